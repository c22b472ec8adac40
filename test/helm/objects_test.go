package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestObjects checks what must hold whatever the values are, the configuration with the
// exporter itself.
func TestObjects(t *testing.T) {
	want := map[string][]string{
		"minimal":    {"public: 4.0 of 30"},
		"demo":       {"big: any plan, 1000000 cores or more, up to 99.50 USD a month"},
		"token":      {"account main: 3.6", "account lab / 2: café: 3.6"},
		"pair":       {"public: 4.0 of 29", "account main: 3.6 (up to 9.6 with a long history) of 60", "account lab: ", "account guest: "},
		"everything": {"public: 2.0 of 20", "of 50", "account vault: ", "cheap-in-europe: "},
	}
	for name, file := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			mustHelm(t, "lint", "--strict", chart, "--values", file)
			all := render(t, "--values", file)
			checkNames(t, all)
			checkSelectors(t, all)
			checkPod(t, all)
			checkSecrets(t, all)
			checkExtraArgs(t, all, file)
			if out := checkConfig(t, all, append(want[name], "configuration OK")...); strings.Contains(out, "level=WARN") {
				t.Errorf("warning:\n%s", out)
			}
		})
	}
}

func checkNames(t *testing.T, all objects) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range all {
		m := o.(metav1.Object)
		id := fmt.Sprintf("%T %s/%s", o, m.GetNamespace(), m.GetName())
		if seen[id] {
			t.Errorf("%s exists twice", id)
		}
		seen[id] = true
		if m.GetNamespace() == "" {
			t.Errorf("%s: no namespace", id)
		}
		for _, problem := range validation.IsDNS1123Label(m.GetName()) {
			t.Errorf("%s: %s", id, problem)
		}
		checkLabels(t, id, m.GetLabels())
	}
}

func checkLabels(t *testing.T, id string, set map[string]string) {
	t.Helper()
	for key, value := range set {
		for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
			t.Errorf("%s: label %s: %s", id, key, problem)
		}
	}
	for _, key := range []string{"helm.sh/chart", "app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"} {
		if set[key] == "" {
			t.Errorf("%s: no label %s", id, key)
		}
	}
}

// assertSelects checks that a selector matches, and that it has only labels that no upgrade
// changes.
func assertSelects(t *testing.T, what string, selector, set map[string]string) {
	t.Helper()
	if keys := slices.Sorted(maps.Keys(selector)); !slices.Equal(keys, []string{"app.kubernetes.io/instance", "app.kubernetes.io/name"}) {
		t.Errorf("%s: selector has labels %v", what, keys)
	}
	if !labels.SelectorFromSet(selector).Matches(labels.Set(set)) {
		t.Errorf("%s: selector %v does not match labels %v", what, selector, set)
	}
}

func checkSelectors(t *testing.T, all objects) {
	t.Helper()
	template, container := pod(t, all)
	service := one[*corev1.Service](t, all)
	port := service.Spec.Ports[0]

	assertSelects(t, "Deployment", one[*appsv1.Deployment](t, all).Spec.Selector.MatchLabels, template.Labels)
	assertSelects(t, "Service", service.Spec.Selector, template.Labels)
	assertPort(t, "Service", port.TargetPort, container)
	for _, c := range template.Spec.TopologySpreadConstraints {
		assertSelects(t, "topologySpreadConstraints", c.LabelSelector.MatchLabels, template.Labels)
	}
	for _, p := range of[*policyv1.PodDisruptionBudget](all) {
		assertSelects(t, "PodDisruptionBudget", p.Spec.Selector.MatchLabels, template.Labels)
	}
	for _, p := range of[*networkingv1.NetworkPolicy](all) {
		assertSelects(t, "NetworkPolicy", p.Spec.PodSelector.MatchLabels, template.Labels)
		assertPort(t, "NetworkPolicy", *p.Spec.Ingress[0].Ports[0].Port, container)
	}
	for _, m := range of[*monitoringv1.ServiceMonitor](all) {
		assertSelects(t, "ServiceMonitor", m.Spec.Selector.MatchLabels, service.Labels)
		if m.Spec.Endpoints[0].Port != port.Name {
			t.Errorf("ServiceMonitor: got port %s, want %s", m.Spec.Endpoints[0].Port, port.Name)
		}
		if m.Namespace != service.Namespace && !slices.Contains(m.Spec.NamespaceSelector.MatchNames, service.Namespace) {
			t.Errorf("ServiceMonitor in %s does not look into %s", m.Namespace, service.Namespace)
		}
	}
}

func assertPort(t *testing.T, what string, port intstr.IntOrString, c corev1.Container) {
	t.Helper()
	for _, p := range c.Ports {
		if p.ContainerPort == 10170 && (port == intstr.FromString(p.Name) || port == intstr.FromInt32(p.ContainerPort)) {
			return
		}
	}
	t.Errorf("%s: the container has no port %s", what, port.String())
}

func checkPod(t *testing.T, all objects) {
	t.Helper()
	template, container := pod(t, all)
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	if r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec)); !r.Allowed {
		t.Errorf("pod security restricted: %s: %s", r.ForbiddenReason(), r.ForbiddenDetail())
	}
	for _, a := range of[*corev1.ServiceAccount](all) {
		if a.Name != template.Spec.ServiceAccountName {
			t.Errorf("the pod uses ServiceAccount %s, not %s", template.Spec.ServiceAccountName, a.Name)
		}
	}
	volumes := map[string]bool{}
	for _, v := range template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range container.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("volume %s is mounted but does not exist", m.Name)
		}
		if !m.ReadOnly {
			t.Errorf("volume %s is not mounted read-only", m.Name)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 {
		t.Errorf("volumes are not mounted: %v", slices.Collect(maps.Keys(volumes)))
	}
}

// checkSecrets checks that a Secret exists beside no existing one, and that no other
// object contains a token.
func checkSecrets(t *testing.T, all objects) {
	t.Helper()
	template, _ := pod(t, all)
	own := map[string]bool{}
	for _, s := range of[*corev1.Secret](all) {
		own[s.Name] = true
	}
	for _, v := range template.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		if mode := *v.Projected.DefaultMode; mode != 0o440 {
			t.Errorf("tokens have mode %o, want 440", mode)
		}
		for _, s := range v.Projected.Sources {
			if len(own) > 0 && !own[s.Secret.Name] {
				t.Errorf("Secret %v exists beside %s", own, s.Secret.Name)
			}
		}
	}
	for _, o := range all {
		if _, secret := o.(*corev1.Secret); !secret && strings.Contains(toJSON(t, o), "token-of-") {
			t.Errorf("%T contains a token", o)
		}
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// kinds returns how many objects of each kind there are.
func kinds(all objects) map[string]int {
	count := map[string]int{}
	for _, o := range all {
		count[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return count
}

// TestKinds checks which values create which objects, and to which ports the exporter may
// connect.
func TestKinds(t *testing.T) {
	minimal := map[string]int{"ConfigMap": 1, "Deployment": 1, "Service": 1, "ServiceAccount": 1}
	for name, c := range map[string]struct {
		more   map[string]int
		egress []string // nil without a NetworkPolicy
	}{
		"minimal":   {map[string]int{}, nil},
		"demo":      {map[string]int{"NetworkPolicy": 1}, []string{}},
		"token":     {map[string]int{"Secret": 1, "ServiceAccount": -1}, nil},
		"pair":      {map[string]int{"PodDisruptionBudget": 1, "ServiceMonitor": 1, "PrometheusRule": 4, "ConfigMap": 3, "NetworkPolicy": 1}, []string{"UDP 53", "TCP 53", "TCP 8443"}},
		"openshift": {map[string]int{"NetworkPolicy": 1}, []string{"UDP 53", "TCP 53", "TCP 443", "UDP 5353", "TCP 5353"}},
	} {
		want := maps.Clone(minimal)
		for kind, n := range c.more {
			if want[kind] += n; want[kind] == 0 {
				delete(want, kind)
			}
		}
		all := render(t, "--values", valueFiles(t)[name])
		simtest.AssertEqual(t, name+": kinds", kinds(all), want)
		var egress []string
		for _, p := range of[*networkingv1.NetworkPolicy](all) {
			egress = []string{}
			for _, rule := range p.Spec.Egress {
				for _, port := range rule.Ports {
					egress = append(egress, fmt.Sprintf("%s %s", *port.Protocol, port.Port))
				}
			}
			if len(p.Spec.PolicyTypes) != 2 || len(p.Spec.Ingress) != 1 || len(p.Spec.Ingress[0].From) == 0 {
				t.Errorf("%s: everybody may connect: %v", name, p.Spec)
			}
		}
		simtest.AssertEqual(t, name+": egress", egress, c.egress)
	}
}

// TestLabelsOfSelector checks that no value can replace the labels that selectors use.
func TestLabelsOfSelector(t *testing.T) {
	checkSelectors(t, render(t, "--values", valueFiles(t)["pair"],
		"--set", `commonLabels.app\.kubernetes\.io/name=other,podLabels.app\.kubernetes\.io/instance=other`))
}

// TestLongName checks names of objects at the longest name of a release.
func TestLongName(t *testing.T) {
	release := strings.Repeat("long-name-", 6)[:53]
	checkNames(t, decode(t, mustHelm(t, "template", release, chart, "--namespace", namespace, "--values", valueFiles(t)["pair"])))
}

// TestChecksum checks that a change of the configuration replaces the pods, and that
// nothing else does: a token is read again without that.
func TestChecksum(t *testing.T) {
	token := valueFiles(t)["token"]
	checksum := func(args ...string) string {
		template, _ := pod(t, render(t, append([]string{"--values", token}, args...)...))
		return template.Annotations["checksum/config"]
	}
	before := checksum()
	if before == "" || checksum("--set", "config.api.timeout=9s") == before {
		t.Error("a changed configuration has the same checksum")
	}
	if checksum("--set", "accounts[0].name=main,accounts[0].token=other") != checksum("--set", "accounts[0].name=main,accounts[0].token=token") {
		t.Error("a changed token has another checksum")
	}
	if checksum("--set", "replicas=0") != before {
		t.Error("another number of replicas has another checksum")
	}
}
