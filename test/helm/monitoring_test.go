package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestPrometheusRules compares the rules with those of alerts/.
func TestPrometheusRules(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["pair"])
	promtool := repo.Program(t, "promtool")
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		name := strings.TrimSuffix(filepath.Base(file), ".rules.yml")
		rule := named[*monitoringv1.PrometheusRule](t, all, "rental-server-rental-exporter-"+name)
		simtest.AssertEqual(t, name+": label release", rule.Labels["release"], "kube-prometheus-stack")
		// As Prometheus reads them: templates in rules have to survive.
		var got, want any
		rendered := simtest.WriteFile(t, filepath.Join(t.TempDir(), "rules.yml"), toJSON(t, rule.Spec))
		repo.ReadYAML(t, rendered, &got)
		repo.ReadYAML(t, file, &want)
		simtest.AssertEqual(t, name+": rules", got, want)
		if out, err := exec.Command(promtool, "check", "rules", rendered).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestAlertValues checks the values that change rules.
func TestAlertValues(t *testing.T) {
	// rules counts recording rules by name and alerts by name and labels.
	rules := func(values string) map[string]int {
		count := map[string]int{}
		for _, r := range of[*monitoringv1.PrometheusRule](render(t, "--values", valueFiles(t)[values])) {
			for _, g := range r.Spec.Groups {
				for _, rule := range g.Rules {
					count[strings.TrimSpace(fmt.Sprint(rule.Record+rule.Alert, " ", rule.Labels["severity"], " ", rule.Labels["team"]))]++
				}
			}
		}
		return count
	}
	want := map[string]int{}
	for rule, n := range rules("pair") {
		name, severity, isAlert := strings.Cut(rule, " ")
		switch {
		case name == "ServerRentalPlanSoldOut" || name == "ServerRentalPlanAdded":
		case isAlert:
			want[name+" "+severity+" servers"] = n
		default:
			want[name] = n
		}
	}
	simtest.AssertEqual(t, "rules", rules("everything"), want)
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
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "server-rental-"), ".json")
		m := named[*corev1.ConfigMap](t, all, "rental-server-rental-exporter-"+name)
		got := m.Data[filepath.Base(file)]
		if len(m.Data) != 1 || strings.TrimSpace(got) != strings.TrimSpace(repo.Read(t, "dashboards/"+filepath.Base(file))) {
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
