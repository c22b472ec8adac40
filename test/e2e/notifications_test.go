//go:build e2e

package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestNotifications sends alerts through Alertmanager to every receiver of the example, each
// of which is a server of this test that speaks the service's protocol, and compares what
// people read with golden files: a hit, a top-up without a link, the end of an alert, and
// fifty plans with hostile names.
func TestNotifications(t *testing.T) {
	t.Parallel()
	var in inbox
	hooks := httptest.NewServer(&in)
	t.Cleanup(hooks.Close)
	smtp := in.serveSMTP(t)
	alertmanager := startNotifier(t, hooks.URL, smtp)

	const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#"
	newAlert := func(test, name, plan, severity string, annotations map[string]string) map[string]any {
		annotations["runbook_url"] = runbooks + strings.ToLower(name)
		return map[string]any{"labels": map[string]string{"test": test, "alertname": name, "plan": plan, "severity": severity}, "annotations": annotations}
	}
	const order = "https://shop.rental.example/order?plan=ryzen-5-3600&from=fra"
	hit := newAlert("hit", "ServerRentalWatchHit", "", "info", map[string]string{
		"summary": "A plan in stock began to match a watch.", "link": order,
		"description": "Watch cheap: Ryzen 5 3600 (plan ryzen-5-3600) for 64.90 USD a month excluding VAT, offered in ams, fra, still in stock. Order at " + order +
			". In the last 30 days it came back every 8 h and stayed for 11 min.",
	})
	topup := newAlert("topup", "ServerRentalTopupExpiring", "", "info", map[string]string{
		"summary": "The exchange rate of a pending top-up is about to expire.", "link": "",
		"description": "The exchange rate of top-up tu_1 of account main (100.00 USD in btc) is locked until 00:30:00 UTC.",
	})
	topup["labels"].(map[string]string)["account"] = "main"
	suspended := newAlert("suspended", "ServerRentalServerSuspended", "", "critical", map[string]string{
		"summary": "A server is suspended.", "description": "Server node-1.example of account main is suspended.",
	})
	alerts := []any{hit, topup, suspended}
	for i := range 50 {
		link := fmt.Sprintf("https://shop.rental.example/order?plan=p%02d", i)
		if i == 1 {
			link += strings.Repeat("x", 2048-len(link))
		}
		alerts = append(alerts, newAlert("many", "ServerRentalPlanBackInStock", fmt.Sprintf("p%02d", i), "info", map[string]string{
			"summary": "A sold-out plan came back in stock.", "link": link,
			"description": fmt.Sprintf("%s<https://evil.example|[x](https://evil.example)>%s (plan p%02d) went from sold out to in stock. Order at %s.",
				strings.Repeat("ü", i%3), strings.Repeat("€", 600*(i%2)), i, link),
		}))
	}
	post(t, alertmanager, alerts)
	receivers := []string{"digest", "discord", "ntfy", "operators", "pager", "slack", "telegram"}
	want := func(test string, names []string) {
		t.Helper()
		simtest.Eventually(t, test+": messages", func() bool { return len(in.of(test)) >= len(names) })
		got := in.of(test)
		simtest.AssertEqual(t, test+": receivers", slices.Sorted(maps.Keys(got)), names)
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, "### %s\n%s\n", name, clip(got[name]))
		}
		simtest.Golden(t, filepath.Join("testdata", "notification_"+test+".txt"), text.String())
		if strings.Contains(text.String(), "error: ") {
			t.Errorf("%s: a text is longer than its service accepts", test)
		}
	}
	for _, test := range []string{"hit", "topup", "many", "suspended"} {
		want(test, receivers)
	}
	suspended["endsAt"] = time.Now().Add(-time.Second).Format(time.RFC3339Nano)
	post(t, alertmanager, []any{suspended})
	want("resolved", []string{"operators", "pager"})
}

// clip returns a message for a golden file: the first lines, and the start of each.
func clip(message string) string {
	lines := strings.Split(message, "\n")
	for i, l := range lines {
		if runes := []rune(l); len(runes) > 400 {
			lines[i] = fmt.Sprintf("%s (%d characters)", string(runes[:300]), len(runes))
		}
	}
	if n := len(lines); n > 30 {
		lines = append(lines[:20:20], fmt.Sprintf("(%d lines)", n))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// post sends alerts to Alertmanager.
func post(t *testing.T, address string, alerts []any) {
	t.Helper()
	body := string(simtest.Encode(t, alerts))
	r, err := http.Post("http://"+address+"/api/v2/alerts", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	simtest.AssertEqual(t, "status of the alerts", r.StatusCode, http.StatusOK)
}

// startNotifier runs Alertmanager with the receivers of the example, whose services are those
// of the test. All of them get all alerts, grouped by the label test.
func startNotifier(t *testing.T, hooks, smtp string) string {
	t.Helper()
	text := repo.Read(t, "alerts/alertmanager.example.yml")
	text = strings.NewReplacer(
		"https://hooks.slack.com/services", hooks+"/slack", "https://discord.com/api/webhooks", hooks+"/discord", "https://ntfy.example.org/servers", hooks+"/ntfy",
		"mail.example.org:587", smtp,
	).Replace(text)
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	config["global"] = map[string]any{"pagerduty_url": hooks + "/pager", "telegram_api_url": hooks + "/telegram", "smtp_require_tls": false}
	config["templates"] = []string{repo.Path(t, "alerts") + "/templates/*.tmpl"}
	delete(config, "inhibit_rules")
	var routes []any
	for _, r := range config["receivers"].([]any) {
		receiver := r.(map[string]any)
		routes = append(routes, map[string]any{"receiver": receiver["name"], "continue": true})
		mails, _ := receiver["email_configs"].([]any)
		for _, m := range mails {
			m.(map[string]any)["to"] = fmt.Sprintf("%v@example.org", receiver["name"]) // tells the two apart
		}
	}
	config["route"] = map[string]any{"receiver": "nobody", "group_by": []string{"test"}, "group_wait": "1s", "group_interval": "1s", "routes": routes}
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	file := simtest.WriteFile(t, filepath.Join(dir, "alertmanager.yml"), string(simtest.Encode(t, config)))
	start(t, address, repo.Program(t, "prometheus-alertmanager", "alertmanager"), "--cluster.listen-address=", "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"))
	return address
}

// inbox keeps the messages that arrive, as people read them, by test and receiver.
type inbox struct {
	mu       sync.Mutex
	messages map[string]map[string]string
}

// of returns the messages of a test by receiver.
func (in *inbox) of(test string) map[string]string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return maps.Clone(in.messages[test])
}

// add files a message under the test whose alerts it names.
func (in *inbox) add(receiver, text string) {
	test := "hit"
	for _, s := range []struct{ word, test string }{{"top-up", "topup"}, {"sold-out", "many"}, {"suspended", "suspended"}, {"Resolved", "resolved"}} {
		if strings.Contains(text, s.word) {
			test = s.test
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.messages == nil {
		in.messages = map[string]map[string]string{}
	}
	if in.messages[test] == nil {
		in.messages[test] = map[string]string{}
	}
	in.messages[test][receiver] += text
}

// ServeHTTP stands for the services that are called by HTTP, with the responses and the
// limits that they document.
func (in *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	receiver, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, _ := io.ReadAll(r.Body)
	var message map[string]any
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var text strings.Builder
	switch receiver {
	case "ntfy":
		for name, limit := range map[string]int{"t": 250, "m": 4096} {
			message[name] = limited(execute(r.URL.Query().Get(name), message), limit, func(s string) int { return len(s) })
		}
		fmt.Fprintf(&text, "title: %s\n%s\n", message["t"], message["m"])
	case "telegram":
		show(&text, "", map[string]any{"text": message["text"]})
		w.Header().Set("Content-Type", "application/json")
		defer func() {
			_, _ = io.WriteString(w, `{"ok": true, "result": {"message_id": 1, "date": 1, "chat": {"id": 1}}}`)
		}()
	case "pager":
		payload := message["payload"].(map[string]any)
		details := payload["custom_details"].(map[string]any)
		for _, name := range []string{"dedup_key", "routing_key", "client_url"} {
			delete(message, name)
		}
		delete(payload, "timestamp")
		delete(details, "num_firing") // old versions add these
		delete(details, "num_resolved")
		show(&text, "", message)
		w.WriteHeader(http.StatusAccepted)
	default:
		show(&text, "", message)
		defer fmt.Fprint(w, "ok") // what Slack responds
	}
	in.add(receiver, text.String())
}

// show writes the texts of a JSON value with their paths.
func show(w io.Writer, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			show(w, path+"."+key, v[key])
		}
	case []any:
		for i, element := range v {
			show(w, fmt.Sprintf("%s[%d]", path, i), element)
		}
	case string:
		limit := cmp.Or(map[string]int{".embeds[0].title": 256, ".payload.summary": 1024, ".attachments[0].actions[0].url": 3000}[path], 4096)
		if v != "" {
			fmt.Fprintf(w, "%s: %s\n", strings.TrimPrefix(path, "."), limited(v, limit, utf8.RuneCountInString))
		}
	}
}

// limited returns a text, or an error in its place if it is longer than a limit. No golden
// file may contain that.
func limited(text string, limit int, length func(string) int) string {
	if n := length(text); n > limit {
		return fmt.Sprintf("error: %d instead of %d", n, limit)
	}
	return text
}

// execute does what ntfy does with a template in an address.
func execute(text string, data any) string {
	var b strings.Builder
	t, err := template.New("").Parse(text)
	if err == nil {
		err = t.Execute(&b, data)
	}
	if err != nil {
		return err.Error()
	}
	return b.String()
}

// serveSMTP receives mail until the end of the test, and returns the address.
func (in *inbox) serveSMTP(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go in.receiveMail(textproto.NewConn(conn))
		}
	}()
	return l.Addr().String()
}

// receiveMail speaks SMTP on one connection.
func (in *inbox) receiveMail(c *textproto.Conn) {
	defer c.Close()
	_ = c.PrintfLine("220 test")
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		switch command, _, _ := strings.Cut(strings.ToUpper(line), " "); command {
		case "DATA":
			_ = c.PrintfLine("354 go on")
			in.add(readMail(c.DotReader()))
			_ = c.PrintfLine("250 received")
		case "QUIT":
			_ = c.PrintfLine("221 bye")
			return
		default:
			_ = c.PrintfLine("250 fine")
		}
	}
}

// readMail returns the receiver of a mail, and its subject and parts.
func readMail(r io.Reader) (receiver, text string) {
	m, err := mail.ReadMessage(bufio.NewReader(r))
	if err != nil {
		return "invalid", err.Error()
	}
	receiver, _, _ = strings.Cut(m.Header.Get("To"), "@")
	subject, _ := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	text = "Subject: " + subject + "\n"
	_, params, _ := mime.ParseMediaType(m.Header.Get("Content-Type"))
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := parts.NextPart() // decodes quoted-printable
		if err != nil {
			return receiver, text
		}
		body, _ := io.ReadAll(p)
		text += fmt.Sprintf("%s\n%s\n", p.Header.Get("Content-Type"), strings.ReplaceAll(string(body), "\r\n", "\n"))
	}
}
