// Package helm tests the Helm chart. Helm is a tool of this module.
package helm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

const (
	chart     = "../../deploy/helm/server-rental-exporter"
	namespace = "monitoring"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// helm4 and helm3 return the path of Helm in the version of a go.mod.
var (
	helm4 = sync.OnceValues(func() (string, error) { return buildHelm(".") })
	helm3 = sync.OnceValues(func() (string, error) { return buildHelm("helm3") })
)

// buildHelm builds Helm in a directory's module, unless it is in Go's build cache.
func buildHelm(dir string) (path string, err error) {
	cmd := exec.Command("go", "tool", "-n", "helm")
	cmd.Dir, cmd.Stderr = dir, os.Stderr // standard error has the progress of downloads
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// runHelm runs a version of Helm without a cluster and without an environment.
func runHelm(t *testing.T, version func() (string, error), args ...string) (stdout string, err error) {
	t.Helper()
	path, err := version()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), err
}

func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runHelm(t, helm4, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// valuesFile writes the values that testdata has under a name to a file.
func valuesFile(t *testing.T, name string) string {
	t.Helper()
	var values map[string]any
	repo.ReadYAML(t, "testdata/values.yaml", &values)
	text, err := yaml.Marshal(values[name])
	if err != nil || values[name] == nil {
		t.Fatalf("%s: no such values: %v", name, err)
	}
	return simtest.WriteFile(t, filepath.Join(t.TempDir(), name+".yaml"), string(text))
}

// template renders the chart as the release "rental" with the values of a name.
func template(t *testing.T, values string, args ...string) string {
	t.Helper()
	return mustHelm(t, append([]string{"template", "rental", chart, "--namespace", namespace, "--values", valuesFile(t, values)}, args...)...)
}

// objects are the objects of a release.
type objects []runtime.Object

// strict decodes objects of Kubernetes and the Prometheus Operator, and fails at an
// unknown or duplicate field.
var strict = sync.OnceValue(func() runtime.Decoder {
	if err := errors.Join(monitoringv1.AddToScheme(scheme.Scheme), monitoringv1alpha1.AddToScheme(scheme.Scheme)); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
})

// render is template with the decoded objects.
func render(t *testing.T, values string, args ...string) (all objects) {
	t.Helper()
	for _, doc := range strings.Split("\n"+template(t, values, args...), "\n---\n") {
		if !strings.Contains(doc, "kind:") {
			continue
		}
		o, _, err := strict().Decode([]byte(doc+"\n"), nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		all = append(all, o)
	}
	return all
}

// renderWith renders the chart with values as text.
func renderWith(t *testing.T, values string) objects {
	t.Helper()
	return render(t, "minimal", "--values", simtest.WriteFile(t, filepath.Join(t.TempDir(), "values.yaml"), values))
}

// objectsOf returns the objects of a type.
func objectsOf[T runtime.Object](all objects) (found []T) {
	for _, o := range all {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// object returns the only object of a type with a name, or with any if that is empty.
func object[T interface {
	runtime.Object
	metav1.Object
}](t *testing.T, all objects, name string) T {
	t.Helper()
	found := slices.DeleteFunc(objectsOf[T](all), func(o T) bool { return name != "" && o.GetName() != name })
	if len(found) != 1 {
		t.Fatalf("got %d objects of type %T %q, want 1", len(found), *new(T), name)
	}
	return found[0]
}

// pod returns the pod template of the Deployment or the StatefulSet, and the exporter's container.
func pod(t *testing.T, all objects) (template corev1.PodTemplateSpec, container corev1.Container) {
	t.Helper()
	if sets := objectsOf[*appsv1.StatefulSet](all); len(sets) > 0 {
		template = sets[0].Spec.Template
	} else {
		template = object[*appsv1.Deployment](t, all, "").Spec.Template
	}
	simtest.AssertEqual(t, "first container", template.Spec.Containers[0].Name, "exporter")
	return template, template.Spec.Containers[0]
}
