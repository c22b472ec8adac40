package helm

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/rulefmt"
	corev1 "k8s.io/api/core/v1"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

// TestVersion checks that the chart deploys the exporter that it belongs to.
func TestVersion(t *testing.T) {
	version := strings.TrimSpace(repo.Read(t, "VERSION"))
	var c map[string]any
	repo.ReadYAML(t, chart+"/Chart.yaml", &c)
	simtest.AssertEqual(t, "versions", []any{c["version"], c["appVersion"]}, []any{version, version})
	const image = "ghcr.io/server-rental-exporter/server_rental_exporter"
	if !strings.Contains(repo.Read(t, ".goreleaser.yaml"), "images: ["+image+"]\n") {
		t.Errorf(".goreleaser.yaml does not push %s", image)
	}
	_, container := pod(t, render(t, "minimal"))
	simtest.AssertEqual(t, "image", container.Image, image+":v"+version)
}

// TestWatchCriteria compares the criteria of a watch that the chart's schema allows with those of the exporter.
func TestWatchCriteria(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Properties map[string]struct {
				Items struct {
					Properties map[string]struct{ Type string }
				}
			}
		}
	}
	repo.ReadYAML(t, chart+"/values.schema.json", &schema)
	got, want := map[string]string{}, map[string]string{}
	for name, criterion := range schema.Properties["config"].Properties["watches"].Items.Properties {
		got[name] = criterion.Type
	}
	types := map[string]string{"string": "string", "[]string": "array", "*bool": "boolean", "*float64": "number"}
	for field := range reflect.ValueOf(collector.Watch{}).Fields() {
		want[field.Tag.Get("yaml")] = types[field.Type.String()]
	}
	simtest.AssertEqual(t, "criteria and types", got, want)
}

// TestHelm3 checks that Helm 3 renders the same as Helm 4, except blank lines.
func TestHelm3(t *testing.T) {
	blank := regexp.MustCompile(`\n\s*\n`)
	for _, values := range []string{"everything", "pair", "token"} {
		args := []string{"template", "rental", chart, "--namespace", namespace, "--kube-version=1.32.0", "--values", valuesFile(t, values)}
		got, err := runHelm(t, helm3, args...)
		if err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, values, blank.ReplaceAllString(got, "\n"), blank.ReplaceAllString(mustHelm(t, args...), "\n"))
	}
}

// TestPrometheusRules compares the rules of the chart, as Prometheus reads them, with those of
// alerts/, without disabled alerts, with the labels that alerts get and another runbook.
func TestPrometheusRules(t *testing.T) {
	all := render(t, "everything")
	for path, want := range rules.Groups(t) {
		for i := range want {
			want[i].Rules = slices.DeleteFunc(want[i].Rules, func(r rulefmt.Rule) bool {
				return r.Alert == "ServerRentalPlanSoldOut" || r.Alert == "ServerRentalPlanAdded"
			})
			for _, r := range want[i].Rules {
				if r.Alert != "" {
					maps.Copy(r.Labels, map[string]string{"team": "servers", "severity": "none", "namespace": namespace})
					r.Annotations["runbook_url"] = "https://wiki.example.org/rental#" + strings.ToLower(r.Alert)
				}
			}
		}
		name := "rental-exporter-" + strings.TrimSuffix(filepath.Base(path), ".rules.yml")
		got := rules.Parse(t, simtest.Encode(t, object[*monitoringv1.PrometheusRule](t, all, name).Spec))
		simtest.AssertEqual(t, name, got, want)
	}
}

// TestDashboards compares the dashboards with those of dashboards/, and checks that
// `kubectl apply` works.
func TestDashboards(t *testing.T) {
	all := render(t, "pair")
	for _, file := range repo.Glob(t, "dashboards/*.json") {
		name := filepath.Base(file)
		m := object[*corev1.ConfigMap](t, all, strings.TrimSuffix(strings.Replace(name, "server-rental-", "rental-server-rental-exporter-", 1), ".json"))
		simtest.AssertEqual(t, name, m.Data, map[string]string{name: repo.Read(t, "dashboards/"+name)})
		const lastApplied = 256 << 10 // bytes of all annotations: `kubectl apply` keeps a copy of the object in one
		if n := len(simtest.Encode(t, m)); n > lastApplied*9/10 {
			t.Errorf("%s: has %d bytes, too near to the limit of annotations", m.Name, n)
		}
	}
}

// TestRefused checks that wrong values are refused with an error that names them: what the
// templates check, an unknown key, and flags that other values set.
func TestRefused(t *testing.T) {
	refused := func(want string, args ...string) {
		t.Helper()
		args = append([]string{"template", chart, "--values", valuesFile(t, "minimal")}, args...)
		if _, err := runHelm(t, helm4, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", args, err, want)
		}
	}
	for _, c := range []struct{ set, want string }{
		{"image.name=x", "/image"},
		{"accounts[0].name=main", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[0].tokenFile=/y", `accounts: "main" needs one of secret, tokenFile and token`},
		{"accounts[0].name=main,accounts[0].token=x,accounts[1].name=main,accounts[1].token=y", `there are two accounts "main"`},
		{"accounts[0].name=a,accounts[0].token=x,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", "no Secret beside an existing one"},
		{"accounts[0].name=a,accounts[0].secret.name=y,accounts[0].secret.key=z,accounts[1].name=b,accounts[1].secret.name=y,accounts[1].secret.key=z", `key "z" of Secret "y" is used twice`},
		{"demo=true", "config.api.base_url: must be empty with demo"},
		{"demo=true,accounts[0].name=main,accounts[0].token=x", "accounts, accountsSecret, config.account_files: must be empty with demo"},
		{"config.api.base_url=", "config.api.base_url: is required"},
		{"replicaCount=2,shards=2", "replicaCount: must be 1 with shards"},
		{"web.tls=true", "web.configSecret.name: is required"},
		{"service.nodePort=30000", "service.nodePort: needs service.type NodePort or LoadBalancer"},
		{"scrapeConfig.enabled=true", "scrapeConfig.enabled: needs web.serviceDiscovery"},
		{"prometheusRule.disabledAlerts={ServerRentalNothing}", `there is no alert "ServerRentalNothing"`},
		{"networkPolicy.enabled=true,networkPolicy.from=null", "networkPolicy.from: must not be empty"},
	} {
		refused(c.want, "--set", c.set)
	}
	refused("shards: need Kubernetes 1.28 or later", "--set", "shards=2", "--kube-version=1.27.9")
	_, container := pod(t, render(t, "everything", "--set", "extraArgs=null"))
	for _, arg := range append(container.Args, "--demo", "--shard=1") {
		refused("/extraArgs/0", "--set-json", `extraArgs=["`+arg+`"]`)
	}
}

// readmeBlocks returns the examples of values in README.md.
func readmeBlocks(t *testing.T) (blocks []string) {
	t.Helper()
	for _, b := range repo.Documents(t)["deploy/helm/server-rental-exporter/README.md"].Blocks {
		if b.Language == "yaml" {
			blocks = append(blocks, b.Text)
		}
	}
	return blocks
}

// TestReadme renders the chart with each example of its README, and runs the commands that
// need no cluster, with the notes that Helm then prints.
func TestReadme(t *testing.T) {
	readme := repo.Read(t, "deploy/helm/server-rental-exporter/README.md")
	blocks := readmeBlocks(t)
	for _, block := range blocks {
		t.Log(block)
		renderWith(t, block)
	}
	values := simtest.WriteFile(t, filepath.Join(t.TempDir(), "rental.yaml"), blocks[0]) // the commands use the first example
	commands := regexp.MustCompile(`(?m)^helm (.*)`).FindAllStringSubmatch(readme, -1)
	if len(commands) == 0 {
		t.Fatal("no commands")
	}
	for _, c := range commands {
		args := strings.NewReplacer("upgrade --install", "install", "deploy/helm/server-rental-exporter", chart, "rental.yaml", values).Replace(c[1])
		mustHelm(t, append(strings.Fields(args), "--dry-run=client")...)
	}
}

// TestValuesUsed checks that each text and number of values that differ from their defaults is in some object.
func TestValuesUsed(t *testing.T) {
	var values map[string]map[string]any
	repo.ReadYAML(t, "testdata/values.yaml", &values)
	everything, rendered := values["everything"], template(t, "everything")
	delete(everything, "extraObjects")                  // templates
	delete(everything, "strategy")                      // of a Deployment, but this has shards
	delete(everything["image"].(map[string]any), "tag") // the digest counts
	delete(everything["prometheusRule"].(map[string]any), "disabledAlerts")
	var check func(where string, value any)
	check = func(where string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key := range value {
				check(where+"."+key, value[key])
			}
		case []any:
			for _, item := range value {
				check(where, item)
			}
		case string, int, float64:
			if !strings.Contains(rendered, fmt.Sprint(value)) {
				t.Errorf("%s: %v is in no object", where, value)
			}
		}
	}
	check("", everything)
}
