package helm

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestGenerated compares the generated files with their sources. `make update` rewrites them.
func TestGenerated(t *testing.T) {
	t.Run("files", func(t *testing.T) {
		for dir, extension := range map[string]string{"alerts": ".rules.yml", "dashboards": ".json"} {
			want := map[string]string{}
			for _, source := range repo.Glob(t, dir+"/*"+extension) {
				want[filepath.Base(source)] = repo.Read(t, dir+"/"+filepath.Base(source))
			}
			assertFiles(t, filepath.Join(chart, "files", dir), want)
		}
	})
	t.Run("schema", func(t *testing.T) {
		var collectors []string
		for _, r := range collector.Resources() {
			collectors = append(collectors, fmt.Sprintf(`            %q: {"$ref": "#/definitions/collector"}`, r.Name))
		}
		list := regexp.MustCompile(`(?m)(^ +"\w+": \{"\$ref": "#/definitions/collector"\},?\n)+`)
		schema := repo.Read(t, "deploy/helm/server-rental-exporter/values.schema.json")
		simtest.Golden(t, filepath.Join(chart, "values.schema.json"), list.ReplaceAllLiteralString(schema, strings.Join(collectors, ",\n")+"\n"))
	})
	t.Run("kubernetes", func(t *testing.T) {
		for dir, want := range plainManifests(t) {
			assertFiles(t, repo.Path(t, "deploy/kubernetes/"+dir), want)
		}
	})
	t.Run("every value", func(t *testing.T) {
		// Other tests compare rules and dashboards.
		long := regexp.MustCompile(`(?s)spec:\n  groups:\n.*|data:\n  server-rental-\w+\.json:.*`)
		var all strings.Builder
		for _, doc := range split(template(t, "--values", valueFiles(t)["everything"])) {
			fmt.Fprintf(&all, "---\n%s\n", strings.TrimSpace(long.ReplaceAllString(doc, "")))
		}
		simtest.Golden(t, "testdata/everything.golden", all.String())
	})
}

// assertFiles compares all files of a directory.
func assertFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		simtest.Golden(t, filepath.Join(dir, name), text)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, wanted := want[f.Name()]; !wanted {
			t.Errorf("%s/%s has no source: remove it", dir, f.Name())
		}
	}
}

// plainName is the release that deploy/kubernetes is rendered from.
const plainName = "server-rental-exporter"

// onlyHelm is what only makes sense in a release: the template's name, labels of Helm, the
// namespace, and the checksum, which would be wrong as soon as somebody edits the
// configuration.
var onlyHelm = regexp.MustCompile(`(?m)^# Source: .*\n|^ +annotations:\n +checksum/config: .*\n|^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by|namespace): .*\n`)

// plainManifests returns the files of deploy/kubernetes by directory and name, rendered
// from the chart. The directory shards has what the chart has for three shards only.
func plainManifests(t *testing.T) map[string]map[string]string {
	t.Helper()
	dirs := map[string]map[string]string{"exporter": {}, "network-policy": {}, "prometheus-operator": {}, "dashboards": {}, "shards": {}}
	kustomizations := map[string]map[string]any{"exporter": {}, "shards": {"patches": []any{map[string]string{
		"patch": "$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + plainName + "}\n",
	}}}}
	for _, set := range []string{"shards=1", "shards=3"} {
		rendered := mustHelm(t, "template", plainName, chart, "--namespace", namespace, "--values", valueFiles(t)["plain"], "--set", set)
		for _, doc := range split(onlyHelm.ReplaceAllString(rendered, "")) {
			object := decode(t, doc)[0]
			dir, file := plainFile(object)
			if m, isConfigMap := object.(*corev1.ConfigMap); isConfigMap && dir == "exporter" {
				// Made by kustomize, whose names have a hash: a changed file replaces the pod.
				dirs[dir]["config.yml"] = "# docs/configuration.md has all settings.\n" + format(t, m.Data["config.yml"])
				kustomizations[dir]["configMapGenerator"] = []any{map[string]any{
					"name": m.Name, "files": []string{"config.yml"}, "options": map[string]any{"labels": m.Labels},
				}}
				continue
			}
			if _, found := dirs[dir][file]; set == "shards=3" {
				if found {
					continue
				}
				dir = "shards"
			}
			dirs[dir][file] = "# Rendered from the Helm chart; not edited by hand.\n# yamllint disable rule:line-length\n" + format(t, doc)
		}
	}
	for dir, files := range dirs {
		resources := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return name == "config.yml" })
		if dir == "shards" {
			resources = slices.Insert(resources, 0, "../exporter")
		}
		kustomization := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": resources}
		maps.Copy(kustomization, kustomizations[dir])
		files["kustomization.yaml"] = marshal(t, kustomization)
	}
	return dirs
}

// plainFile returns where an object is in deploy/kubernetes.
func plainFile(object runtime.Object) (dir, file string) {
	kind, suffix := object.GetObjectKind().GroupVersionKind().Kind, strings.TrimPrefix(object.(metav1.Object).GetName(), plainName)
	dir = "exporter"
	switch {
	case kind == "NetworkPolicy":
		dir = "network-policy"
	case kind == "ServiceMonitor", kind == "PrometheusRule":
		dir = "prometheus-operator"
	case kind == "ConfigMap" && suffix != "":
		dir = "dashboards"
	}
	return dir, strings.ToLower(kind) + suffix + ".yaml"
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

// TestPrometheusRules compares the rules with those of alerts/, without disabled alerts and
// with the label that alerts get.
func TestPrometheusRules(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["everything"])
	for _, file := range repo.Glob(t, "alerts/*.rules.yml") {
		var got, want struct {
			Groups []struct {
				Rules []map[string]any
				Other map[string]any `yaml:",inline"`
			}
		}
		repo.ReadYAML(t, file, &want)
		for i, group := range want.Groups {
			want.Groups[i].Rules = slices.DeleteFunc(group.Rules, func(r map[string]any) bool {
				return r["alert"] == "ServerRentalPlanSoldOut" || r["alert"] == "ServerRentalPlanAdded"
			})
			for _, r := range want.Groups[i].Rules {
				if r["alert"] != nil {
					r["labels"].(map[string]any)["team"] = "servers"
				}
			}
		}
		name := "rental-exporter-" + strings.TrimSuffix(filepath.Base(file), ".rules.yml")
		// As Prometheus reads them: templates in rules have to survive.
		spec := simtest.Encode(t, named[*monitoringv1.PrometheusRule](t, all, name).Spec)
		if err := yaml.Unmarshal(spec, &got); err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, name, got, want)
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
