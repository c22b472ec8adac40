package helm

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestGenerated compares the generated files with their sources. `make update` rewrites them.
func TestGenerated(t *testing.T) {
	t.Run("files", func(t *testing.T) {
		want := map[string]string{}
		for _, pattern := range []string{"alerts/*.rules.yml", "dashboards/*.json"} {
			for _, source := range repo.Glob(t, pattern) {
				name := filepath.Join(filepath.Dir(pattern), filepath.Base(source))
				want[name] = repo.Read(t, name)
			}
		}
		assertFiles(t, filepath.Join(chart, "files"), want)
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
		var all strings.Builder
		for _, doc := range split(template(t, "--values", valueFiles(t)["everything"])) {
			object, kind, name := parse(t, doc)
			root := object.Content[0]
			switch { // other tests compare rules and dashboards
			case kind == "PrometheusRule":
				*field(root, "spec") = yaml.Node{}
			case kind == "ConfigMap" && name != "rental-exporter":
				*field(root, "data") = yaml.Node{}
			}
			all.WriteString(marshal(t, "---\n", object))
		}
		simtest.Golden(t, "testdata/everything.golden", all.String())
	})
}

// assertFiles compares all files of a directory and those below it.
func assertFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		path := filepath.Join(dir, name)
		if *simtest.Update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		simtest.Golden(t, path, text)
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if _, wanted := want[name]; err == nil && !d.IsDir() && !wanted {
			t.Errorf("%s/%s has no source: remove it", dir, name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// plainManifests returns the files of deploy/kubernetes by directory and name, rendered
// from the chart. The directory shards has what the chart has for three shards only.
func plainManifests(t *testing.T) map[string]map[string]string {
	t.Helper()
	const release = "server-rental-exporter"
	dirs := map[string]map[string]string{"exporter": {}, "network-policy": {}, "prometheus-operator": {}, "dashboards": {}, "shards": {}}
	more := map[string]map[string]any{"exporter": {}, "shards": {"patches": []any{
		map[string]string{"patch": marshal(t, "", map[string]any{
			"$patch": "delete", "apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]string{"name": release},
		})},
	}}}
	for _, set := range []string{"shards=1", "shards=3"} {
		rendered := mustHelm(t, "template", release, chart, "--namespace", namespace, "--values", valueFiles(t)["plain"], "--set", set)
		for _, doc := range split(rendered) {
			object, kind, name := parse(t, doc)
			root := object.Content[0]
			dir, suffix := "exporter", strings.TrimPrefix(strings.TrimPrefix(name, release), "-")
			switch {
			case kind == "NetworkPolicy":
				dir = "network-policy"
			case kind == "ServiceMonitor", kind == "PrometheusRule":
				dir = "prometheus-operator"
			case kind == "ConfigMap" && suffix != "":
				dir = "dashboards"
			}
			file := strings.TrimSuffix(strings.ToLower(kind)+"-"+suffix, "-") + ".yaml"
			removeHelm(root)
			if file == "configmap.yaml" {
				// Made by kustomize, whose names have a hash: a changed file replaces the pod.
				var config yaml.Node
				if err := yaml.Unmarshal([]byte(field(field(root, "data"), "config.yml").Value), &config); err != nil {
					t.Fatal(err)
				}
				dirs[dir]["config.yml"] = marshal(t, "# docs/configuration.md has all settings.\n", &config)
				more[dir]["configMapGenerator"] = []any{map[string]any{
					"name": name, "files": []string{"config.yml"}, "options": map[string]any{"labels": field(field(root, "metadata"), "labels")},
				}}
				continue
			}
			if _, found := dirs[dir][file]; found {
				continue
			}
			if set == "shards=3" {
				dir = "shards"
			}
			dirs[dir][file] = marshal(t, "# Rendered from the Helm chart; not edited by hand.\n# yamllint disable rule:line-length\n", object)
		}
	}
	for dir, files := range dirs {
		kustomization := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
		resources := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return name == "config.yml" })
		if dir == "shards" {
			resources = slices.Insert(resources, 0, "../exporter")
		}
		kustomization["resources"] = resources
		maps.Copy(kustomization, more[dir])
		dirs[dir]["kustomization.yaml"] = marshal(t, "", kustomization)
	}
	return dirs
}

// parse returns an object, its kind and its name.
func parse(t *testing.T, doc string) (object *yaml.Node, kind, name string) {
	t.Helper()
	object = &yaml.Node{}
	if err := yaml.Unmarshal([]byte(doc), object); err != nil {
		t.Fatal(err)
	}
	root := object.Content[0]
	return object, field(root, "kind").Value, field(field(root, "metadata"), "name").Value
}

// field returns the value of a key of a mapping; an empty node if there is none.
func field(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return &yaml.Node{}
}

// removeHelm removes what only makes sense in a release: the template's name, labels of
// Helm, the namespace, and the checksum, which would be wrong as soon as somebody edits the
// configuration.
func removeHelm(n *yaml.Node) {
	if strings.HasPrefix(n.HeadComment, "# Source:") {
		n.HeadComment = ""
	}
	if n.Kind == yaml.MappingNode {
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			switch n.Content[i].Value {
			case "helm.sh/chart", "app.kubernetes.io/managed-by", "checksum/config", "namespace":
				n.Content = slices.Delete(n.Content, i, i+2)
			case "annotations":
				removeHelm(n.Content[i+1])
				if len(n.Content[i+1].Content) == 0 {
					n.Content = slices.Delete(n.Content, i, i+2)
				}
			}
		}
	}
	for _, child := range n.Content {
		removeHelm(child)
	}
}

func marshal(t *testing.T, head string, v any) string {
	t.Helper()
	var text bytes.Buffer
	fmt.Fprint(&text, head)
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
