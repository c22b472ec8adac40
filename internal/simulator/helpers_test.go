package simulator

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/memnet"
)

const token = "token-of-main"

// withMain is a simulator with one example account.
func withMain(o Options) *Simulator {
	s := New(o)
	s.Change(func(w *World) { w.Accounts[token] = ExampleAccount("main", time.Now()) })
	return s
}

// serve has the simulator listen on loopback and gives its base URL. Anything
// that net/http logs, such as a panic, fails the test.
func serve(t *testing.T, s *Simulator) string {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(failingWriter{t}, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

type failingWriter struct{ t *testing.T }

func (w failingWriter) Write(p []byte) (int, error) {
	w.t.Errorf("the server logged: %s", p)
	return len(p), nil
}

// serveInMemory gives a client whose every address is the simulator.
func serveInMemory(t *testing.T, s *Simulator) (*http.Client, *http.Server) {
	t.Helper()
	l := memnet.Listen()
	server := &http.Server{Handler: s, ErrorLog: log.New(failingWriter{t}, "", 0)}
	go func() { _ = server.Serve(l) }()
	transport := &http.Transport{DialContext: l.Dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
	})
	return &http.Client{Transport: transport}, server
}

// reply is a whole answer. The body is what came, Err what then went wrong.
type reply struct {
	Status int
	Header http.Header
	Body   string
	Err    error
}

func do(t *testing.T, client *http.Client, method, url, token string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(r)
	if err != nil {
		return reply{Err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return reply{response.StatusCode, response.Header, string(body), err}
}

func get(t *testing.T, url, token string) reply {
	t.Helper()
	return do(t, http.DefaultClient, http.MethodGet, url, token)
}

// ask is get without a network.
func ask(s *Simulator, path, token, address string) reply {
	r := httptest.NewRequest(http.MethodGet, "http://rental.example/api/v1"+path, nil)
	r.RemoteAddr = address
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return reply{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
}

// object is the body as JSON.
func (r reply) object(t *testing.T) Object {
	t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(r.Body), &o); err != nil {
		t.Fatalf("body %.200q of status %d: %v", r.Body, r.Status, err)
	}
	return o
}

// ids are those of the data of a list, in their order.
func (r reply) ids(t *testing.T) string {
	t.Helper()
	var ids []string
	for _, v := range r.object(t)["data"].([]any) {
		ids = append(ids, text(v.(Object), "id"))
	}
	return strings.Join(ids, " ")
}

// picked are the named headers, those that are absent left out.
func (r reply) picked(names ...string) map[string]string {
	got := map[string]string{}
	for _, name := range names {
		if values := r.Header.Values(name); len(values) > 0 {
			got[name] = strings.Join(values, ", ")
		}
	}
	return got
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}
