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
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
// people read with a golden file: a hit, fifty plans, two collectors, an alert without a link,
// one about the exporter, and the end of that.
func TestNotifications(t *testing.T) {
	t.Parallel()
	n := startNotifier(t, "alertmanager.example.yml")
	for _, name := range []string{"hit", "many", "collectors", "suspended", "down"} {
		n.notify(name, "chat", "digest", "discord", "ntfy", "operators", "operators-resolved", "pager", "pager-resolved", "telegram")
	}
	n.alerts["down"][0]["endsAt"] = time.Now().Add(-time.Second).Format(time.RFC3339Nano)
	n.notify("down", "operators-resolved", "pager-resolved")
	n.assertGolden("testdata/notifications.txt")
}

// TestNewerReceivers is TestNotifications with the receivers of current versions, but
// Pushover, whose address no configuration changes.
func TestNewerReceivers(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(repo.Program(t, "prometheus-alertmanager", "alertmanager"), "--version").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`^\w+, version 0\.([0-9]|[12][0-9]|3[0-3])\.`).Match(out) {
		t.Skip("this version does not have these receivers")
	}
	n := startNotifier(t, "alertmanager-0.34.example.yml")
	n.notify("hit", "gotify", "mattermost", "teams")
	n.notify("many", "gotify", "mattermost", "teams")
	n.assertGolden("testdata/notifications-0.34.txt")
}

// TestInhibition asks Alertmanager, with the rules of the example, which alerts it keeps back
// while another one fires.
func TestInhibition(t *testing.T) {
	t.Parallel()
	var config map[string]any
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.example.yml"), &config)
	config["route"], config["receivers"] = map[string]any{"receiver": "nobody"}, []any{map[string]any{"name": "nobody"}}
	for _, c := range []struct{ cause, inhibited, others string }{
		{"ExporterDown", "CatalogFrozen DataStale,collector=status RenewalsUnfunded,account=main", ""},
		{
			"TokenRejected,account=main", "CollectorFailing,collector=account,account=main DataStale,collector=servers,account=main",
			"BalanceLow,account=main CollectorFailing,collector=plans DataStale,collector=servers,account=lab",
		},
		{
			"CollectorFailing,collector=servers,account=main", "DataStale,collector=servers,account=main",
			"ComponentNotOperational,component=ddos DataStale,collector=account,account=main DataStale,collector=servers,account=lab",
		},
		{"CollectorFailing,collector=status", "ComponentNotOperational,component=ddos DataStale,collector=status", "DataStale,collector=plans"},
		{
			"BalanceLow,account=main,severity=critical", "BalanceLow,account=main,severity=warning",
			"BalanceLow,account=lab,severity=warning RenewalsUnfunded,account=main,severity=warning",
		},
		{
			"ComponentNotOperational,location=fra,component=network,severity=critical", "ComponentNotOperational,location=fra,component=network,severity=warning",
			"ComponentNotOperational,location=ams,component=network,severity=warning ComponentNotOperational,location=fra,component=ipmi,severity=warning",
		},
		{"IncidentOngoing,severity=warning", "ProviderNotOperational,overall=outage,severity=warning", "ComponentNotOperational,component=ddos,severity=warning"},
	} {
		t.Run(c.cause, func(t *testing.T) {
			t.Parallel()
			address := startAlertmanager(t, config)
			var alerts []map[string]any
			for _, text := range strings.Fields(c.cause + " " + c.inhibited + " " + c.others) {
				name, rest, _ := strings.Cut(text, ",")
				labels := map[string]string{"alertname": "ServerRental" + name}
				for _, label := range strings.Split(rest, ",") {
					key, value, _ := strings.Cut(label, "=")
					labels[cmp.Or(key, "severity")] = cmp.Or(value, "warning")
				}
				alerts = append(alerts, map[string]any{"labels": labels, "generatorURL": "http://alert/" + text})
			}
			post(t, address, alerts)
			eventuallyEqual(t, "inhibited", func() (got []string) {
				var alerts []struct{ GeneratorURL string }
				if err := json.Unmarshal([]byte(simtest.Get(t, "http://"+address+"/api/v2/alerts?active=false").Body), &alerts); err != nil {
					t.Fatal(err)
				}
				for _, a := range alerts {
					got = append(got, strings.TrimPrefix(a.GeneratorURL, "http://alert/"))
				}
				slices.Sort(got)
				return got
			}, func() []string { return strings.Fields(c.inhibited) })
		})
	}
}

// restockAlert returns one of many alerts of plans.
func restockAlert(i int) map[string]any {
	plan := fmt.Sprintf("p%02d", i)
	return map[string]any{
		"labels": map[string]string{"alertname": "ServerRentalPlanBackInStock", "plan": plan, "severity": "info"},
		"annotations": map[string]string{
			"summary": "A plan is back in stock.", "link": "https://rental.example/order?plan=" + plan,
			"description": fmt.Sprintf("Plan %s is back in stock, %d.00 USD. The price is monthly and excludes VAT.", plan, i),
			"runbook_url": "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md#serverrentalplanbackinstock",
		},
	}
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
func post(t *testing.T, address string, alerts []map[string]any) {
	t.Helper()
	body := string(simtest.Encode(t, alerts))
	r, err := http.Post("http://"+address+"/api/v2/alerts", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	simtest.AssertEqual(t, "status of the alerts", r.StatusCode, http.StatusOK)
}

// notifier is an Alertmanager whose notifications the test receives.
type notifier struct {
	t       *testing.T
	address string
	in      inbox
	alerts  map[string][]map[string]any
	text    strings.Builder
}

// startNotifier runs Alertmanager with the receivers of an example, whose services are those
// of the test. All of them get all alerts, grouped by name.
func startNotifier(t *testing.T, example string) *notifier {
	t.Helper()
	n := &notifier{t: t, in: make(inbox, 100)}
	repo.ReadYAML(t, repo.Path(t, "test/e2e/testdata/alerts.yml"), &n.alerts)
	for i := range 50 {
		n.alerts["many"] = append(n.alerts["many"], restockAlert(i))
	}
	server := httptest.NewServer(n.in)
	t.Cleanup(server.Close)
	hooks := server.URL
	text := strings.NewReplacer(
		"https://hooks.slack.com/services", hooks+"/chat", "https://discord.com/api/webhooks", hooks+"/discord", "https://ntfy.example.org/servers", hooks+"/ntfy",
		"https://example.webhook.office.com", hooks+"/teams", "https://mattermost.example.org/hooks", hooks+"/mattermost", "https://gotify.example.org", hooks+"/gotify",
		"mail.example.org:587", n.in.serveSMTP(t),
	).Replace(repo.Read(t, "alerts/"+example))
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	config["global"] = map[string]any{"telegram_api_url": hooks + "/telegram", "smtp_require_tls": false}
	config["templates"] = []string{repo.Path(t, "alerts") + "/templates/*.tmpl"} // for the mail with buttons
	delete(config, "inhibit_rules")
	var routes []any
	for _, r := range config["receivers"].([]any) {
		receiver := r.(map[string]any)
		if receiver["pushover_configs"] == nil && receiver["name"] != "nobody" {
			routes = append(routes, map[string]any{"receiver": receiver["name"], "continue": true})
		}
		mails, _ := receiver["email_configs"].([]any)
		for _, m := range mails {
			m.(map[string]any)["to"] = fmt.Sprintf("%v@example.org", receiver["name"]) // tells them apart
			if receiver["name"] == "digest" {
				m.(map[string]any)["html"] = `{{ template "server_rental.html" . }}`
			}
		}
		pagers, _ := receiver["pagerduty_configs"].([]any)
		for _, p := range pagers {
			p.(map[string]any)["url"] = fmt.Sprintf("%s/%v", hooks, receiver["name"])
		}
	}
	config["receivers"] = append(config["receivers"].([]any), map[string]any{"name": "default"})
	config["route"] = map[string]any{"receiver": "default", "group_by": []string{"alertname"}, "group_wait": "1s", "group_interval": "1s", "routes": routes}
	n.address = startAlertmanager(t, config)
	return n
}

// notify posts alerts, and waits until exactly these receivers have got a message.
func (n *notifier) notify(name string, receivers ...string) {
	n.t.Helper()
	post(n.t, n.address, n.alerts[name])
	got := map[string]string{}
	simtest.Eventually(n.t, name+": messages", func() bool {
		for len(n.in) > 0 {
			message := <-n.in
			got[message[0]] += message[1]
		}
		return len(got) >= len(receivers)
	})
	simtest.AssertEqual(n.t, name+": receivers", slices.Sorted(maps.Keys(got)), receivers)
	for _, r := range receivers {
		fmt.Fprintf(&n.text, "### %s: %s\n%s\n", name, r, clip(got[r]))
	}
}

// assertGolden compares all messages with a golden file.
func (n *notifier) assertGolden(path string) {
	n.t.Helper()
	simtest.Golden(n.t, path, n.text.String())
	if strings.Contains(n.text.String(), "error: ") {
		n.t.Error("a text is longer than its service accepts")
	}
}

func startAlertmanager(t *testing.T, config map[string]any) string {
	t.Helper()
	dir, address := t.TempDir(), simtest.FreeAddress(t)
	file := simtest.WriteFile(t, filepath.Join(dir, "alertmanager.yml"), string(simtest.Encode(t, config)))
	start(t, address, repo.Program(t, "prometheus-alertmanager", "alertmanager"), "--cluster.listen-address=", "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"))
	return address
}

// inbox receives messages, as people read them: the receiver and the text.
type inbox chan [2]string

// ServeHTTP stands for the services that are called by HTTP, with the limits that they document
// and a response that all of them could send.
func (in inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		show(&text, "text", message["text"])
	default:
		show(&text, "", message)
	}
	in <- [2]string{receiver, text.String()}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"ok": true, "result": {"message_id": 1, "date": 1, "chat": {"id": 1}}}`)
}

// hidden are the fields of a message that differ between runs or versions.
var hidden = regexp.MustCompile(`\.(dedup_key|routing_key|client_url|timestamp|num_firing|num_resolved)$`)

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
		if v != "" && !hidden.MatchString(path) {
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
func (in inbox) serveSMTP(t *testing.T) string {
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
func (in inbox) receiveMail(c *textproto.Conn) {
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
			in <- readMail(c.DotReader())
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
func readMail(r io.Reader) [2]string {
	m, err := mail.ReadMessage(bufio.NewReader(r))
	if err != nil {
		return [2]string{"invalid", err.Error()}
	}
	receiver, _, _ := strings.Cut(m.Header.Get("To"), "@")
	subject, _ := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	text := "Subject: " + subject + "\n"
	_, params, _ := mime.ParseMediaType(m.Header.Get("Content-Type"))
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := parts.NextPart() // decodes quoted-printable
		if err != nil {
			return [2]string{receiver, text}
		}
		body, _ := io.ReadAll(p)
		text += fmt.Sprintf("%s\n%s\n", p.Header.Get("Content-Type"), strings.ReplaceAll(string(body), "\r\n", "\n"))
	}
}
