package alerts_test

import (
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"
	"unicode/utf8"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// group is what Alertmanager tells a receiver. Names of fields are those of its JSON.
type group struct {
	Status            string            `json:"status"`
	Alerts            []alert           `json:"alerts"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
}

type alert struct {
	Status      string            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// newGroup returns alerts of one name that differ by a label.
func newGroup(status, name, label string, values []string, description, link string) group {
	g := group{
		Status: status, CommonLabels: map[string]string{"alertname": name, "severity": "warning"},
		CommonAnnotations: map[string]string{"summary": "Summary of the alert.", "runbook_url": runbooks + strings.ToLower(name)},
	}
	for _, value := range values {
		a := alert{status, maps.Clone(g.CommonLabels), maps.Clone(g.CommonAnnotations)}
		a.Labels[label] = value
		a.Annotations["description"] = fmt.Sprintf(description, value)
		if link != "" {
			a.Annotations["link"] = link + value
		}
		g.Alerts = append(g.Alerts, a)
	}
	return g
}

// TestMessages compares with a golden file what the templates of the example's receivers make of a
// hit, fifty plans, two collectors, and an exporter that is down and up again. Receivers that have
// the same template share its messages. A receiver works alone, so that it includes no template.
func TestMessages(t *testing.T) {
	amtool := repo.Program(t, "amtool")
	groups := map[string]group{
		"hit": newGroup("firing", "ServerRentalWatchHit", "plan", []string{"epyc-9654"},
			"Plan %s hit watch cheap. The price excludes VAT.", "https://rental.example/order?a=b&plan="),
		"many": newGroup("firing", "ServerRentalPlanBackInStock", "plan", slices.Repeat([]string{"one"}, 50),
			"Plan %s is back in stock.", "https://rental.example/"),
		"collectors": newGroup("firing", "ServerRentalCollectorFailing", "collector", []string{"account", "servers"},
			"Collector %s of main's account fails.", ""),
		"suspended": newGroup("firing", "ServerRentalServerSuspended", "account", []string{"main"},
			"A server of account %s is suspended.", ""),
		"resolved": newGroup("resolved", "ServerRentalExporterDown", "severity", []string{"critical"},
			"No exporter responds: this is %s.", ""),
	}
	texts := templates(t)
	texts[`{{ template "server_rental.html" . }}`] = "templates/server_rental.tmpl"
	var golden strings.Builder
	byPlace := func(a, b string) int { return strings.Compare(texts[a], texts[b]) }
	for _, text := range slices.SortedFunc(maps.Keys(texts), byPlace) {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			render := renderAlertmanager
			if texts[text] == "ntfy webhook_configs url" {
				render = renderNtfy
			}
			message := strings.TrimSpace(render(t, amtool, text, groups[name]))
			lines := strings.Split(message, "\n") // services limit the number of characters
			fmt.Fprintf(&golden, "### %s: %s: %d characters, %d lines\n", texts[text], name, utf8.RuneCountInString(message), len(lines))
			golden.WriteString(strings.Join(lines[:min(len(lines), 14)], "\n") + "\n\n")
		}
	}
	simtest.Golden(t, repo.Path(t, "test/alerts/testdata/messages.txt"), golden.String())
}

// renderAlertmanager returns what Alertmanager makes of a group.
func renderAlertmanager(t *testing.T, amtool, text string, g group) string {
	t.Helper()
	data := simtest.WriteFile(t, filepath.Join(t.TempDir(), "data.json"), string(simtest.Encode(t, g)))
	glob := repo.Path(t, "alerts/templates/*.tmpl")
	args := []string{"template", "render", "--template.glob=" + glob, "--template.data=" + data, "--template.text=" + text}
	if strings.Contains(text, "html") {
		args = append(args, "--template.type=html")
	}
	out, err := exec.Command(amtool, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return string(out)
}

// renderNtfy returns what ntfy makes of the first ten alerts of a group, with the templates of the
// title and the message in its address.
func renderNtfy(t *testing.T, _, address string, g group) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Alerts) > 10 { // max_alerts
		g.TruncatedAlerts, g.Alerts = len(g.Alerts)-10, g.Alerts[:10]
	}
	var message strings.Builder
	parsed, err := template.New("").Parse(u.Query().Get("t") + "\n" + u.Query().Get("m"))
	if err == nil {
		err = parsed.Execute(&message, simtest.Decode(t, simtest.Encode(t, g)))
	}
	if err != nil {
		t.Error(err)
	}
	return message.String()
}

// templates returns the templates of all receivers, with the first place that has each.
func templates(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var find func(where string, value any)
	find = func(where string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				find(where+" "+key, value[key])
			}
		case []any:
			for _, item := range value {
				find(where, item)
			}
		case string:
			isTemplate := strings.Contains(value, "{{") || strings.Contains(value, "tpl=1")
			if _, known := found[value]; !known && isTemplate {
				found[value] = where
			}
			if strings.Contains(value, "{{ template ") {
				t.Errorf("%s: needs a template", where)
			}
		}
	}
	for _, file := range []string{"alertmanager.example.yml", "alertmanager-0.34.example.yml"} {
		var config struct{ Receivers []map[string]any }
		repo.ReadYAML(t, repo.Path(t, "alerts/"+file), &config)
		for _, r := range config.Receivers {
			name := r["name"].(string)
			delete(r, "name")
			find(name, r)
		}
	}
	return found
}
