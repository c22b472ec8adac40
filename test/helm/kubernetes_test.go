package helm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

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
		deployment = "ConfigMap:5 Deployment:1 NetworkPolicy:1 PrometheusRule:4 Service:1 ServiceAccount:1 ServiceMonitor:1"
		sharded    = "ConfigMap:5 NetworkPolicy:1 PodDisruptionBudget:1 PrometheusRule:4 Service:2 ServiceAccount:1 ServiceMonitor:1 StatefulSet:1"
	)
	configs := map[string]string{} // by the name of the ConfigMap
	for name, c := range map[string]struct{ kustomization, config, kinds, image, want string }{
		"example":                  {example, config, deployment, image, "cheap-in-europe: "},
		"registry":                 {example + blocks[0], config, deployment, "registry.example/server_rental_exporter:1.2.3", ""},
		"more accounts":            {example + blocks[1], lab, deployment, image, "account lab: "},
		"no account":               {example + blocks[2], public, deployment, image, "public: "},
		"three shards":             {shards, config, sharded, image, "2: 0.0 requests per minute, 0 accounts"},
		"shards and more accounts": {shards + blocks[1], lab, sharded, image, "2: 7.4 requests per minute, 1 accounts: lab"},
		"shards and no account":    {shards + blocks[2], public, sharded, image, "0: 4.0 requests per minute"},
		"five shards":              {shards + blocks[3], config, sharded, image, "4: "},
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
			template, _ := pod(t, all)
			m := named[*corev1.ConfigMap](t, all, volume(t, template, "config").ConfigMap.Name)
			for name, config := range configs {
				if (name == m.Name) != (config == c.config) {
					t.Errorf("a pod is replaced if and only if %s has another name for another configuration", name)
				}
			}
			configs[m.Name] = c.config
		})
	}
}
