package helm

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// existing are the Secrets and ConfigMaps that the values of testdata name and that the
// chart does not create.
func existing(t *testing.T) objects {
	t.Helper()
	certificate, key := selfSigned(t)
	webConfig := "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\n"
	secret := func(name string, data map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}
	}
	return objects{
		secret("rental-tokens", map[string]string{"main": "token-of-main", "lab": "token-of-lab\n"}),
		secret("guest-token", map[string]string{"token": "token-of-guest"}),
		secret("server-rental-exporter-tokens", map[string]string{"main": "token-of-main", "lab": "token-of-lab"}),
		secret("web-config", map[string]string{"web-config.yml": webConfig, "config.yml": webConfig, "tls.crt": certificate, "tls.key": key}),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "private-ca"}, Data: map[string]string{"ca.crt": certificate}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "runtime"}, Data: map[string]string{"gogc": "50"}},
	}
}

// selfSigned returns a certificate and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	keyDER, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// podIndex is the index of the pod that the tests run, as Kubernetes gives it to pods of a
// StatefulSet.
const podIndex = "2"

// command writes the pod's volumes to a directory, as a node does, and returns the
// container's command with the paths of that directory.
func command(t *testing.T, all objects, more ...string) *exec.Cmd {
	t.Helper()
	template, container := pod(t, all)
	all = slices.Concat(all, existing(t))
	root := t.TempDir()
	var paths []string
	for _, m := range container.VolumeMounts {
		paths = append(paths, m.MountPath, root+m.MountPath)
	}
	inRoot := strings.NewReplacer(paths...)
	for _, m := range container.VolumeMounts {
		for file, text := range files(t, all, volume(t, template, m.Name)) {
			path := filepath.Join(root, m.MountPath, file)
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
		cmd.Env = append(cmd.Env, v.Name+"="+variable(t, all, v))
	}
	return cmd
}

// variable returns the value of an environment variable.
func variable(t *testing.T, all objects, v corev1.EnvVar) string {
	t.Helper()
	switch from := v.ValueFrom; {
	case from == nil:
		return v.Value
	case from.ConfigMapKeyRef != nil:
		return named[*corev1.ConfigMap](t, all, from.ConfigMapKeyRef.Name).Data[from.ConfigMapKeyRef.Key]
	default:
		simtest.AssertEqual(t, "field", from.FieldRef.FieldPath, "metadata.labels['"+appsv1.PodIndexLabel+"']")
		return podIndex
	}
}

func volume(t *testing.T, template corev1.PodTemplateSpec, name string) corev1.Volume {
	t.Helper()
	i := slices.IndexFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("there is no volume %s", name)
	}
	return template.Spec.Volumes[i]
}

// files returns the files of a volume by path.
func files(t *testing.T, all objects, v corev1.Volume) map[string]string {
	t.Helper()
	found := map[string]string{}
	switch {
	case v.ConfigMap != nil:
		return named[*corev1.ConfigMap](t, all, v.ConfigMap.Name).Data
	case v.Secret != nil:
		return contents(t, all, v.Secret.SecretName)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			data := contents(t, all, source.Secret.Name)
			for _, item := range source.Secret.Items {
				if data[item.Key] == "" || found[item.Path] != "" {
					t.Errorf("Secret %s has no key %s, or two files are at %s", source.Secret.Name, item.Key, item.Path)
				}
				found[item.Path] = data[item.Key]
			}
		}
	case v.CSI != nil:
		found["token"] = "token-of-vault"
	}
	return found
}

// contents returns what a Secret contains.
func contents(t *testing.T, all objects, name string) map[string]string {
	t.Helper()
	secret := named[*corev1.Secret](t, all, name)
	data := map[string]string{}
	maps.Copy(data, secret.StringData)
	for key, text := range secret.Data {
		data[key] = string(text)
	}
	return data
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
	indented := "config:\n" + regexp.MustCompile(`(?m)^`).ReplaceAllString(repo.Read(t, "example.yml"), "  ")
	values := simtest.WriteFile(t, filepath.Join(t.TempDir(), "values.yaml"), indented)
	checkConfig(t, render(t, "--values", valueFiles(t)["minimal"], "--values", values))
}

// TestProbes runs the exporter as a pod of a StatefulSet, and asks it as a node and as
// Prometheus do, for metrics and for servers.
func TestProbes(t *testing.T) {
	all := render(t, "--values", valueFiles(t)["demo"], "--set", "serviceMonitor.enabled=true,scrapeConfig.enabled=true,web.serviceDiscovery=true,shards=3")
	_, container := pod(t, all)
	p := simtest.StartCommand(t, command(t, all, "--web.listen-address=127.0.0.1:0"))
	p.WaitServing()
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		p.Eventually("probe succeeds", func() bool { return p.Get(probe.HTTPGet.Path).Status == http.StatusOK })
	}
	endpoint := one[*monitoringv1.ServiceMonitor](t, all).Spec.Endpoints[0]
	shard := p.Get(endpoint.Path).Exposition(t).Values["server_rental_exporter_shard{}"]
	simtest.AssertEqual(t, "shard", fmt.Sprint(shard), podIndex)
	_, path, _ := strings.Cut(string(one[*monitoringv1alpha1.ScrapeConfig](t, all).Spec.HTTPSDConfigs[0].URL), ":10170")
	simtest.AssertEqual(t, "status of "+path, p.Get(path).Status, http.StatusOK)
}
