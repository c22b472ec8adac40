package alerts_test

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/ntfy"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// group is what Alertmanager tells a receiver. Names of fields are those of its JSON.
type group struct {
	Status          string            `json:"status"`
	Alerts          []alert           `json:"alerts"`
	CommonLabels    map[string]string `json:"commonLabels"`
	TruncatedAlerts int               `json:"truncatedAlerts"`
}

type alert struct {
	Status      string            `json:"status"`
	Annotations map[string]string `json:"annotations"`
}

// newGroup returns n alerts.
func newGroup(n int, summary, link string) group {
	annotations := map[string]string{"summary": summary}
	if link != "" {
		annotations["link"] = link
	}
	return group{Status: "firing", Alerts: slices.Repeat([]alert{{"firing", annotations}}, n), CommonLabels: severity}
}

var severity = map[string]string{"severity": "warning"}

// limits are the longest messages that services take, in characters.
var limits = map[string]int{"phone": 4096, "telegram": 4096, "discord": 2000, "pushover": 1024}

// incidents are the services that open incidents: the only ones that are told the end of an alert.
var incidents = []string{"pagerduty", "opsgenie", "victorops", "jira", "incidentio"}

// TestMessages compares with a golden file what each receiver makes of a restock, two servers and a
// hundred top-ups, whose texts are as long as can be expected. No message is longer than its
// service takes.
func TestMessages(t *testing.T) {
	amtool := repo.Program(t, "amtool")
	groups := map[string]group{
		"one":     newGroup(1, "Plan epyc-9654 in fra is back in stock, 899.00 USD.", "https://rental.example/order?configuration=cfg_1"),
		"two":     newGroup(2, "Component network in fra is not operational: outage.", ""),
		"end":     {Status: "resolved", Alerts: []alert{{"resolved", map[string]string{"summary": "Component network in fra is not operational: outage."}}}, CommonLabels: severity},
		"hundred": newGroup(100, strings.Repeat("s", 139)+".", "https://rental.example/"+strings.Repeat("l", 317)),
	}
	var golden strings.Builder
	texts := templates(t)
	for _, place := range slices.Sorted(maps.Keys(texts)) {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			receiver, _, _ := strings.Cut(place, " ")
			if name == "end" && !slices.Contains(incidents, receiver) {
				continue
			}
			render := renderAlertmanager
			if receiver == "phone" {
				render = renderNtfy
			}
			message := render(t, amtool, texts[place], groups[name])
			if limit := limits[receiver]; limit > 0 {
				atMost(t, place+": "+name+": characters", utf8.RuneCountInString(message), limit)
			}
			lines := strings.Split(message, "\n")
			fmt.Fprintf(&golden, "### %s: %s: %d characters, %d lines\n", place, name, utf8.RuneCountInString(message), len(lines))
			if name == "hundred" {
				lines = lines[len(lines)-1:]
			}
			if !strings.HasSuffix(lines[0], "l") {
				golden.WriteString(strings.Join(lines, "\n") + "\n\n")
			}
		}
	}
	simtest.Golden(t, repo.Path(t, "test/alerts/testdata/messages.txt"), golden.String())
}

// renderAlertmanager returns what Alertmanager makes of a group.
func renderAlertmanager(t *testing.T, amtool, text string, g group) string {
	t.Helper()
	data := simtest.WriteFile(t, filepath.Join(t.TempDir(), "data.json"), string(simtest.Encode(t, g)))
	none := simtest.WriteFile(t, filepath.Join(t.TempDir(), "none.tmpl"), "")
	return repo.Run(t, ".", amtool, "template", "render", "--template.glob="+none, "--template.data="+data, "--template.text="+text)
}

// renderNtfy returns what ntfy makes of the alerts that Alertmanager sends of a group.
func renderNtfy(t *testing.T, _, address string, g group) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	const maxAlerts = 8
	if len(g.Alerts) > maxAlerts {
		g.TruncatedAlerts, g.Alerts = len(g.Alerts)-maxAlerts, g.Alerts[:maxAlerts]
	}
	message, err := ntfy.Message(u, simtest.Encode(t, g))
	if err != nil {
		t.Error(err)
	}
	return message
}

// templates returns the templates of all receivers by the place that has each.
func templates(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var find func(where string, value any)
	find = func(where string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key := range value {
				find(where+" "+key, value[key])
			}
		case []any:
			for _, item := range value {
				find(where, item)
			}
		case string:
			if strings.Contains(value, "{{") || strings.Contains(value, "tpl=1") {
				found[where] = value
			}
		}
	}
	for _, file := range []string{"alertmanager.yml", "receivers.example.yml"} {
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

// TestReceivers puts each example in the place of the phone and checks the configuration, with the
// versions of Alertmanager that have such a receiver.
func TestReceivers(t *testing.T) {
	amtool := repo.Program(t, "amtool")
	var config, examples map[string]any
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.yml"), &config)
	repo.ReadYAML(t, repo.Path(t, "alerts/receivers.example.yml"), &examples)
	isOld := strings.HasPrefix(repo.Run(t, ".", amtool, "--version"), "amtool, version 0.25.")
	later := []string{"teams", "jira", "rocketchat", "incidentio", "mattermost"}
	texts := regexp.MustCompile(`(?m)^  - name: `).Split(repo.Read(t, "alerts/receivers.example.yml"), -1)
	for i, example := range examples["receivers"].([]any) {
		r := example.(map[string]any)
		name := r["name"].(string)
		text, _, _ := strings.Cut(texts[i+1], "\n\n")
		atMost(t, name+": lines", len(strings.Split(strings.TrimSpace(text), "\n")), 12)
		for _, settings := range r {
			if list, ok := settings.([]any); ok {
				simtest.AssertEqual(t, name+": is told the end", list[0].(map[string]any)["send_resolved"], any(slices.Contains(incidents, name)))
			}
		}
		if isOld && slices.Contains(later, name) {
			continue
		}
		r["name"] = "phone"
		config["receivers"] = []any{map[string]any{"name": "nobody"}, r}
		repo.Run(t, ".", amtool, "check-config", simtest.WriteFile(t, filepath.Join(t.TempDir(), "alertmanager.yml"), string(simtest.Encode(t, config))))
	}
}
