package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// groups returns the rules of a file of alerts/ as Prometheus reads them, which templates
// in rules have to survive.
func groups(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var rules map[string]any
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestPrometheusRules compares the rules with those of alerts/.
func TestPrometheusRules(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["pair"])
	promtool := repo.Program(t, "promtool")
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".rules.yml")
		rule := named[*monitoringv1.PrometheusRule](t, all, "rental-server-rental-exporter-"+name)
		if rule.Labels["release"] != "kube-prometheus-stack" {
			t.Errorf("%s: got labels %v", name, rule.Labels)
		}
		got := toJSON(t, rule.Spec)
		if want := toJSON(t, groups(t, text)); !sameJSON(t, got, want) {
			t.Errorf("%s: the rules differ from alerts/", name)
		}
		rendered := filepath.Join(t.TempDir(), "rules.yml")
		if err := os.WriteFile(rendered, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(promtool, "check", "rules", rendered).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		if err := json.Unmarshal([]byte(text), &values[i]); err != nil {
			t.Fatal(err)
		}
	}
	return toJSON(t, values[0]) == toJSON(t, values[1])
}

// TestAlertValues checks the values that change rules.
func TestAlertValues(t *testing.T) {
	alerts, recorded := map[string]int{}, 0
	for _, r := range of[*monitoringv1.PrometheusRule](render(t, "--values", valueFiles(t)["everything"])) {
		if r.Namespace != "monitoring" || r.Annotations["example.com/a"] != "b" {
			t.Errorf("%s: got namespace %s and annotations %v", r.Name, r.Namespace, r.Annotations)
		}
		for _, g := range r.Spec.Groups {
			for _, rule := range g.Rules {
				if rule.Record != "" {
					recorded++
					if rule.Labels["team"] != "" {
						t.Errorf("%s: a recording rule has the label of alerts", rule.Record)
					}
					continue
				}
				alerts[rule.Alert]++
				if rule.Labels["team"] != "servers" || rule.Labels["severity"] == "" {
					t.Errorf("%s: got labels %v", rule.Alert, rule.Labels)
				}
			}
		}
	}
	want, wantRecorded := map[string]int{}, 0
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`(?m)^ +- alert: (\w+)`).FindAllStringSubmatch(string(text), -1) {
			want[name[1]]++
		}
		wantRecorded += strings.Count(string(text), "- record: ")
	}
	delete(want, "ServerRentalPlanSoldOut")
	delete(want, "ServerRentalPlanAdded")
	if toJSON(t, alerts) != toJSON(t, want) || recorded != wantRecorded || recorded == 0 {
		t.Errorf("got alerts %v and %d recording rules, want %v and %d", alerts, recorded, want, wantRecorded)
	}
}

const (
	lastApplied = 256 << 10 // bytes of all annotations: `kubectl apply` keeps a copy of the object in one
	oneMebibyte = 1 << 20   // bytes of a ConfigMap, and of Helm's Secret for a release
)

// TestDashboards compares the dashboards with those of dashboards/, and checks that
// `kubectl apply` works.
func TestDashboards(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["pair"])
	for _, file := range repo.Glob(t, "dashboards/*.json") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "server-rental-"), ".json")
		m := named[*corev1.ConfigMap](t, all, "rental-server-rental-exporter-"+name)
		got := m.Data[filepath.Base(file)]
		if len(m.Data) != 1 || strings.TrimSpace(got) != strings.TrimSpace(string(text)) {
			t.Errorf("%s differs from %s", m.Name, file)
		}
		if m.Labels["grafana_dashboard"] != "1" {
			t.Errorf("%s: got labels %v", m.Name, m.Labels)
		}
		if n := len(toJSON(t, m)); n > lastApplied*9/10 {
			t.Errorf("%s: has %d bytes, too near to the limit of annotations", m.Name, n)
		}
	}
}

// TestReleaseSize checks that Helm can store a release with everything enabled.
func TestReleaseSize(t *testing.T) {
	release := mustHelm(t, "install", "rental", chart, "--dry-run=client", "--output=json", "--values", valueFiles(t)["everything"])
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	if _, err := z.Write([]byte(release)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	n := base64.StdEncoding.EncodedLen(compressed.Len())
	t.Logf("%d bytes of at most %d", n, oneMebibyte)
	if n > oneMebibyte/2 {
		t.Errorf("the release has %d bytes, too near to the limit of a Secret", n)
	}
}

// targetLabels are the labels of a target that the Prometheus Operator sets for a
// ServiceMonitor. A metric's label of the same name is renamed to exported_....
var targetLabels = []string{"job", "instance", "namespace", "service", "pod", "container", "endpoint"}

// TestTargetLabels checks that no label of a metric is renamed.
func TestTargetLabels(t *testing.T) {
	kept := map[string]bool{}
	for _, name := range targetLabels {
		kept[name] = true
	}
	for _, r := range one[*monitoringv1.ServiceMonitor](t, render(t, "--values", valueFiles(t)["pair"])).Spec.Endpoints[0].RelabelConfigs {
		if r.Action == "labeldrop" {
			delete(kept, r.Regex)
		}
	}
	metrics, err := exec.Command(simtest.Binary(t), "--demo", "--once").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[{,](\w+)="`).FindAllStringSubmatch(string(metrics), -1)
	if len(names) == 0 {
		t.Fatal("no labels")
	}
	for _, name := range names {
		if kept[name[1]] {
			t.Fatalf("label %s of a metric is also a label of the target", name[1])
		}
	}
}
