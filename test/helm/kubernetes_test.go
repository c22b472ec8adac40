package helm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// kustomize builds a copy of deploy/kubernetes/example, with lines added to its
// kustomization.yaml and with a configuration, as `kubectl kustomize` does.
func kustomize(t *testing.T, kustomization, config string) objects {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(repo.Path(t, "deploy/kubernetes"))); err != nil {
		t.Fatal(err)
	}
	production := filepath.Join(dir, "production")
	if err := os.Rename(filepath.Join(dir, "example"), production); err != nil {
		t.Fatal(err)
	}
	simtest.WriteFile(t, filepath.Join(production, "kustomization.yaml"), repo.Read(t, "deploy/kubernetes/example/kustomization.yaml")+kustomization)
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

// TestKubernetes checks the example of the plain manifests.
func TestKubernetes(t *testing.T) {
	config := repo.Read(t, "deploy/kubernetes/example/config.yml")
	all := kustomize(t, "", config)
	simtest.AssertEqual(t, "kinds", kinds(all), map[string]int{
		"ConfigMap": 4, "Deployment": 1, "Service": 1, "ServiceAccount": 1, "ServiceMonitor": 1, "PrometheusRule": 4, "NetworkPolicy": 1,
	})
	checkSelectors(t, all)
	checkPod(t, all)
	checkConfig(t, all, "cheap-in-europe")
	for _, o := range all {
		if m := o.(interface{ GetNamespace() string }); m.GetNamespace() != namespace {
			t.Errorf("%T is in namespace %q", o, m.GetNamespace())
		}
	}
	other := kustomize(t, "", config+"# changed\n")
	if name, before := volumeConfigMap(t, other), volumeConfigMap(t, all); name == before {
		t.Errorf("a changed configuration has the same name %s, so that no pod is replaced", name)
	}
}

func volumeConfigMap(t *testing.T, all objects) string {
	t.Helper()
	template, _ := pod(t, all)
	name := volume(t, template, "config").ConfigMap.Name
	named[*corev1.ConfigMap](t, all, name) // exists
	return name
}

// unindent removes the indentation of a list's item.
func unindent(text string) string { return regexp.MustCompile(`(?m)^  `).ReplaceAllString(text, "") }

// TestKubernetesReadme applies the patches of the README.
func TestKubernetesReadme(t *testing.T) {
	blocks := regexp.MustCompile("(?ms)^  ```yaml\n(.*?)^  ```").FindAllStringSubmatch(repo.Read(t, "deploy/kubernetes/README.md"), -1)
	if len(blocks) != 3 {
		t.Fatalf("got %d examples, want 3", len(blocks))
	}
	example := repo.Read(t, "deploy/kubernetes/example/config.yml")
	if _, container := pod(t, kustomize(t, unindent(blocks[0][1]), example)); container.Image != "registry.example/server_rental_exporter:1.2.3" {
		t.Errorf("got image %s", container.Image)
	}
	account := "  - name: lab\n    token_file: /etc/server-rental-exporter/tokens/server-rental-exporter-tokens/lab\n"
	for name, c := range map[string]struct{ patch, config, want string }{
		"more accounts": {blocks[1][1], strings.Replace(example, "watches:", account+"watches:", 1), "account lab: "},
		"no account":    {blocks[2][1], regexp.MustCompile(`(?s)accounts:.*watches:`).ReplaceAllString(example, "watches:"), "public: "},
	} {
		t.Run(name, func(t *testing.T) {
			all := kustomize(t, unindent(c.patch), c.config)
			checkPod(t, all)
			checkConfig(t, all, c.want)
		})
	}
}
