package helm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

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
	for file, text := range plainManifests(t) {
		simtest.Golden(t, repo.Path(t, "deploy/kubernetes/"+file), text)
	}
}

// plainName is the release that deploy/kubernetes is rendered from.
const plainName = "server-rental-exporter"

// onlyHelm is what only makes sense in a release: the template's name, labels of Helm, the
// namespace, and the checksum, which would be wrong as soon as somebody edits the
// configuration.
var onlyHelm = regexp.MustCompile(`(?m)^# Source: .*\n|^ +annotations:\n +checksum/config: .*\n|^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by|namespace): .*\n`)

// plainManifests returns the files of deploy/kubernetes that are rendered from the chart.
// The directory shards has what the chart has for three shards only.
func plainManifests(t *testing.T) map[string]string {
	t.Helper()
	const head = "# Rendered from the Helm chart; not edited by hand.\n"
	files := map[string]string{}
	for _, set := range []string{"shards=1", "shards=3"} {
		rendered := mustHelm(t, "template", plainName, chart, "--namespace", namespace, "--values", valueFiles(t)["plain"], "--set", set)
		for _, doc := range split(onlyHelm.ReplaceAllString(rendered, "")) {
			object, file := decode(t, doc)[0], "exporter/exporter.yaml"
			doc = format(t, doc)
			switch o := object.(type) {
			case *corev1.ConfigMap:
				files["exporter/config.yml"] = "# docs/configuration.md has all settings.\n" + format(t, o.Data["config.yml"])
				continue
			case *monitoringv1.ServiceMonitor:
				file = "example/servicemonitor.yaml"
			default:
				if object.GetObjectKind().GroupVersionKind().Kind == "NetworkPolicy" {
					file = "example/networkpolicy.yaml"
				}
			}
			if strings.Contains(files[file], doc) {
				continue // the same with shards
			}
			if set == "shards=3" {
				file = "shards/shards.yaml"
			}
			if files[file] == "" {
				files[file] = head + doc
			} else {
				files[file] += "---\n" + doc
			}
		}
	}
	return files
}

// format returns YAML in one format, with its comments.
func format(t *testing.T, text string) string {
	t.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		t.Fatal(err)
	}
	return marshal(t, &node)
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// kustomize builds a copy of deploy/kubernetes/example, with another kustomization.yaml and
// another configuration, as `kubectl kustomize` does.
func kustomize(t *testing.T, kustomization, config string) objects {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(repo.Path(t, "deploy/kubernetes"))); err != nil {
		t.Fatal(err)
	}
	production := filepath.Join(dir, "example")
	simtest.WriteFile(t, filepath.Join(production, "kustomization.yaml"), kustomization)
	simtest.WriteFile(t, filepath.Join(production, "config.yml"), config)
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), production)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(manifests))
}

// TestKubernetes checks the example of the plain manifests, and with it the changes that
// the README shows.
func TestKubernetes(t *testing.T) {
	var blocks []string // without the indentation of a list's item
	for _, b := range regexp.MustCompile("(?ms)^  ```yaml\n(.*?)^  ```").FindAllStringSubmatch(repo.Read(t, "deploy/kubernetes/README.md"), -1) {
		blocks = append(blocks, regexp.MustCompile(`(?m)^  `).ReplaceAllString(b[1], ""))
	}
	if len(blocks) != 4 {
		t.Fatalf("got %d examples, want 4", len(blocks))
	}
	example, config := repo.Read(t, "deploy/kubernetes/example/kustomization.yaml"), repo.Read(t, "deploy/kubernetes/example/config.yml")
	shards := strings.Replace(example, "../exporter", "../shards", 1)
	lab := strings.Replace(config, "watches:", "  - name: lab\n    token_file: /etc/server-rental-exporter/tokens/server-rental-exporter-tokens/lab\nwatches:", 1)
	public := regexp.MustCompile(`(?s)accounts:.*watches:`).ReplaceAllString(config, "watches:")
	const (
		image      = "ghcr.io/server-rental-exporter/server_rental_exporter:v"
		deployment = "ConfigMap:1 Deployment:1 NetworkPolicy:1 Service:1 ServiceAccount:1 ServiceMonitor:1"
		sharded    = "ConfigMap:1 NetworkPolicy:1 PodDisruptionBudget:1 Service:2 ServiceAccount:1 ServiceMonitor:1 StatefulSet:1"
	)
	for name, c := range map[string]struct{ kustomization, config, kinds, image, want string }{
		"example":       {example, config, deployment, image, "cheap-in-europe: "},
		"registry":      {example + blocks[0], config, deployment, "registry.example/server_rental_exporter:v1.2.3", ""},
		"more accounts": {example + blocks[1], lab, deployment, image, "account lab: "},
		"no account":    {example + blocks[2], public, deployment, image, "public: "},
		"five shards":   {shards + blocks[3], config, sharded, image, "4: "},
		"three shards":  {shards + blocks[1], lab, sharded, image, "1 accounts: lab"},
	} {
		t.Run(name, func(t *testing.T) {
			all := kustomize(t, c.kustomization, c.config)
			simtest.AssertEqual(t, "kinds", kinds(all), c.kinds)
			checkSelectors(t, all)
			checkPod(t, all)
			checkConfig(t, all, c.want)
			for _, o := range all {
				if m := o.(metav1.Object); m.GetNamespace() != namespace {
					t.Errorf("%T is in namespace %q", o, m.GetNamespace())
				}
			}
			if _, container := pod(t, all); !strings.HasPrefix(container.Image, c.image) {
				t.Errorf("got image %s, want %s", container.Image, c.image)
			}
		})
	}
}

// TestRules runs the command of the README that makes a PrometheusRule of each file of
// rules, with cat in place of kubectl.
func TestRules(t *testing.T) {
	script := regexp.MustCompile("(?s)<!-- tested: TestRules -->\n```sh\n(.*?)\\| kubectl").FindStringSubmatch(repo.Read(t, "deploy/kubernetes/README.md"))
	cmd := exec.Command("bash", "-euc", script[1])
	cmd.Dir = repo.Path(t, ".")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		var want map[string]any
		repo.ReadYAML(t, file, &want)
		name := "server-rental-" + strings.TrimSuffix(filepath.Base(file), ".rules.yml")
		assertRules(t, named[*monitoringv1.PrometheusRule](t, decode(t, string(out)), name), want)
	}
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
