package helm

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// podIndex is the index of the pod that the tests run, as Kubernetes gives it to pods of a
// StatefulSet.
const podIndex = "2"

// command writes the pod's volumes to a directory, as a node does, and returns the
// container's command with the paths of that directory.
func command(t *testing.T, all objects, more ...string) *exec.Cmd {
	t.Helper()
	template, container := pod(t, all)
	root, paths, mounts := t.TempDir(), []string{}, map[string]string{}
	for _, m := range container.VolumeMounts {
		mounts[m.Name] = m.MountPath
		paths = append(paths, m.MountPath, root+m.MountPath)
	}
	inRoot := strings.NewReplacer(paths...)
	for _, v := range template.Spec.Volumes {
		for file, text := range files(t, all, v) {
			path := filepath.Join(root, mounts[v.Name], file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			simtest.WriteFile(t, path, inRoot.Replace(text))
		}
	}
	var args []string
	for _, a := range append(container.Args, more...) {
		args = append(args, inRoot.Replace(a))
	}
	cmd := exec.Command(simtest.Binary(t), args...)
	cmd.Env = []string{} // not that of the test
	for _, v := range container.Env {
		if v.ValueFrom != nil {
			simtest.AssertEqual(t, v.Name, v.ValueFrom.FieldRef.FieldPath, "metadata.labels['"+appsv1.PodIndexLabel+"']")
			v.Value = podIndex
		}
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	return cmd
}

// files returns the files of a volume by path.
func files(t *testing.T, all objects, v corev1.Volume) map[string]string {
	t.Helper()
	const webConfig = "http_server_config: {http2: false}\n"
	data := map[string]map[string]string{ // the Secrets of testdata, which the chart does not create
		"rental-tokens": {"main": "token-of-main", "lab": "token-of-lab\n"},
		"guest-token":   {"token": "token-of-guest"},
		"vault":         {"token": "token-of-vault"},
		"web-config":    {"web-config.yml": webConfig, "config.yml": webConfig},
	}
	for _, m := range objectsOf[*corev1.ConfigMap](all) {
		data[m.Name] = m.Data
	}
	for _, s := range objectsOf[*corev1.Secret](all) {
		data[s.Name] = map[string]string{}
		for key, text := range s.Data {
			data[s.Name][key] = string(text)
		}
	}
	switch {
	case v.ConfigMap != nil:
		return data[v.ConfigMap.Name]
	case v.Secret != nil:
		return data[v.Secret.SecretName]
	}
	found := map[string]string{}
	for _, source := range v.Projected.Sources {
		for _, item := range source.Secret.Items {
			text := data[source.Secret.Name][item.Key]
			if text == "" || found[item.Path] != "" {
				t.Errorf("Secret %s has no key %s, or two files are at %s", source.Secret.Name, item.Key, item.Path)
			}
			found[item.Path] = text
		}
	}
	return found
}

// checkConfig checks with the exporter that the arguments and the configuration are valid,
// and that what it prints contains the given parts.
func checkConfig(t *testing.T, all objects, parts ...string) {
	t.Helper()
	out, err := command(t, all, "--config.check").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, part := range parts {
		if !strings.Contains(string(out), part) {
			t.Errorf("not found: %s\n%s", part, out)
		}
	}
}

// TestExample checks that the chart accepts every setting of example.yml.
func TestExample(t *testing.T) {
	checkConfig(t, renderWith(t, "config:\n"+regexp.MustCompile(`(?m)^`).ReplaceAllString(repo.Read(t, "example.yml"), "  ")))
}

// TestProbes runs the exporter as a pod of a StatefulSet, and asks it as a node and as
// Prometheus do, for metrics and for servers.
func TestProbes(t *testing.T) {
	all := render(t, "demo", "--set", "serviceMonitor.enabled=true,scrapeConfig.enabled=true,web.serviceDiscovery=true,shards=3")
	_, container := pod(t, all)
	p := simtest.StartCommand(t, command(t, all, "--web.listen-address=127.0.0.1:0"))
	p.WaitServing()
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		p.Eventually("probe succeeds", func() bool { return p.Get(probe.HTTPGet.Path).Status == http.StatusOK })
	}
	endpoint := object[*monitoringv1.ServiceMonitor](t, all, "").Spec.Endpoints[0]
	shard := p.Get(endpoint.Path).Exposition(t).Values["server_rental_exporter_shard{}"]
	simtest.AssertEqual(t, "shard", fmt.Sprint(shard), podIndex)
	_, path, _ := strings.Cut(string(object[*monitoringv1alpha1.ScrapeConfig](t, all, "").Spec.HTTPSDConfigs[0].URL), ":10170")
	simtest.AssertEqual(t, "status of "+path, p.Get(path).Status, http.StatusOK)
}
