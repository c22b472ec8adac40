package helm

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestGenerated compares the generated files with their sources. `make update` rewrites them.
func TestGenerated(t *testing.T) {
	var collectors []string
	for _, r := range collector.Resources() {
		collectors = append(collectors, fmt.Sprintf(`            %q: {"$ref": "#/definitions/collector"}`, r.Name))
	}
	list := regexp.MustCompile(`(?m)(^ +"\w+": \{"\$ref": "#/definitions/collector"\},?\n)+`)
	schema := repo.Read(t, "deploy/helm/server-rental-exporter/values.schema.json")
	simtest.Golden(t, filepath.Join(chart, "values.schema.json"), list.ReplaceAllLiteralString(schema, strings.Join(collectors, ",\n")+"\n"))
}

// assertRules compares rules as Prometheus reads them: templates have to survive.
func assertRules(t *testing.T, r *monitoringv1.PrometheusRule, want map[string]any) {
	t.Helper()
	var got map[string]any
	if err := yaml.Unmarshal(simtest.Encode(t, r.Spec), &got); err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, r.Name, got, want)
}

// TestPrometheusRules compares the rules of the chart with those of alerts/, without disabled
// alerts and with the label that alerts get.
func TestPrometheusRules(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["everything"])
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		var want map[string]any
		repo.ReadYAML(t, file, &want)
		for _, g := range want["groups"].([]any) {
			group := g.(map[string]any)
			group["rules"] = slices.DeleteFunc(group["rules"].([]any), func(r any) bool {
				alert := r.(map[string]any)["alert"]
				return alert == "ServerRentalPlanSoldOut" || alert == "ServerRentalPlanAdded"
			})
			for _, r := range group["rules"].([]any) {
				if rule := r.(map[string]any); rule["alert"] != nil {
					rule["labels"].(map[string]any)["team"] = "servers"
				}
			}
		}
		assertRules(t, named[*monitoringv1.PrometheusRule](t, all, "rental-exporter-"+strings.TrimSuffix(filepath.Base(file), ".rules.yml")), want)
	}
}

// TestDashboards compares the dashboards with those of dashboards/, and checks that
// `kubectl apply` works.
func TestDashboards(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["pair"])
	for _, file := range repo.Glob(t, "dashboards/*.json") {
		name := filepath.Base(file)
		m := named[*corev1.ConfigMap](t, all, strings.TrimSuffix(strings.Replace(name, "server-rental-", "rental-server-rental-exporter-", 1), ".json"))
		simtest.AssertEqual(t, name, m.Data, map[string]string{name: repo.Read(t, "dashboards/"+name)})
		const lastApplied = 256 << 10 // bytes of all annotations: `kubectl apply` keeps a copy of the object in one
		if n := len(simtest.Encode(t, m)); n > lastApplied*9/10 {
			t.Errorf("%s: has %d bytes, too near to the limit of annotations", m.Name, n)
		}
	}
}
