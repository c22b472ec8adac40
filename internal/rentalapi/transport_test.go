package rentalapi

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestTransportOverTLS asserts that the header is bounded, unlike the body, and that HTTP/2 is
// not spoken.
func TestTransportOverTLS(t *testing.T) {
	size := 40 << 10
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		simtest.AssertEqual(t, "protocol", r.Proto, "HTTP/1.1")
		w.Header().Set("X", strings.Repeat("x", size))
		_, _ = io.WriteString(w, `{"more":"`+strings.Repeat("x", 1<<20)+`","data":[]}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport := NewTransport(promconfig.HTTPClientConfig{TLSConfig: promconfig.TLSConfig{InsecureSkipVerify: true}}, nil)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "error", fetchList(t.Context(), scopeOver(base, time.Minute, transport), "/plans"), error(nil))
	size = 64 << 10
	simtest.AssertEqual(t, "error", errorText(fetchList(t.Context(), scopeOver(base, time.Minute, transport), "/plans")), "/plans: header: more than 65536 bytes: response is too large")
}

// TestTransportRepeatsNothing asserts that one call is one request, on a connection that is
// not kept: net/http would repeat it silently, or keep one for each request.
func TestTransportRepeatsNothing(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Override("", func(w http.ResponseWriter, r *http.Request) {
			if len(h.Requests()) > 1 || !r.Close {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, `{"data":[]}`)
		})
		s := h.main()
		got := []string{errorText(fetchList(t.Context(), s, "/servers")), errorText(fetchList(t.Context(), s, "/servers"))}
		simtest.AssertEqual(t, "errors", got, []string{"", "/servers: EOF"})
		simtest.AssertEqual(t, "requests", len(h.Requests()), 2)
	})
}

// TestTransportTimeout has a connection that times out before api.timeout, and one that
// notices the end of api.timeout by itself.
func TestTransportTimeout(t *testing.T) {
	for took, want := range map[time.Duration]string{10 * time.Second: "connection timed out", 2 * time.Minute: "no response within 2m0s"} {
		synctest.Test(t, func(t *testing.T) {
			transport := func(*http.Request) (*http.Response, error) {
				time.Sleep(took)
				return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
			}
			s := scopeOver(&url.URL{Scheme: "https", Host: "rental.example"}, 2*time.Minute, roundTripper(transport))
			err := fetchList(t.Context(), s, "/plans")
			var failure *Error
			if !errors.As(err, &failure) || failure.Reason != Timeout || failure.Err.Error() != want {
				t.Errorf("after %v: got %v, want a timeout: %s", took, err, want)
			}
		})
	}
}
