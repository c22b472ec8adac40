package helm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestObjects checks which objects there are, to which ports the exporter may connect, what
// the exporter says of the arguments and the configuration, and what must hold of all
// objects whatever the values are.
func TestObjects(t *testing.T) {
	longest := "--set=fullnameOverride=,nameOverride=the" + strings.Repeat("long-", 12)
	replaced := `--set=commonLabels.app\.kubernetes\.io/name=other,podLabels.app\.kubernetes\.io/instance=other,service.labels.server-rental-exporter/service=other`
	const (
		public     = "ConfigMap:1 Deployment:1 Service:1 ServiceAccount:1"
		restricted = "ConfigMap:1 Deployment:1 NetworkPolicy:1 Service:1 ServiceAccount:1"
		pair       = "ConfigMap:5 Deployment:1 NetworkPolicy:1 PodDisruptionBudget:1 PrometheusRule:4 Service:1 ServiceAccount:1 ServiceMonitor:1"
		shards     = "ConfigMap:5 NetworkPolicy:1 PodDisruptionBudget:1 PrometheusRule:4 Service:2 ServiceAccount:1 ServiceMonitor:1 StatefulSet:1"
		everything = "ConfigMap:7 Ingress:1 NetworkPolicy:1 PrometheusRule:4 ScrapeConfig:1 Service:2 ServiceAccount:1 ServiceMonitor:1 StatefulSet:1"
		names      = "UDP 53, TCP 53, "
	)
	for name, c := range map[string]struct {
		values, args  string // values: the case's name
		kinds, egress string
		check         []string
	}{
		"minimal":         {"", "", public, "any", nil},
		"demo":            {"", "", restricted, "", nil},
		"token":           {"", "", "ConfigMap:1 Deployment:1 Secret:1 Service:1", "any", []string{"account: main\n", "account: lab / 2: café\n"}},
		"pair":            {"", "", pair, names + "TCP 8443", []string{"account: main\n", "account: lab\n", "account: guest\n"}},
		"replaced labels": {"pair", replaced, pair, names + "TCP 8443", nil},
		"shards":          {"pair", "--set=shards=3,replicaCount=1", shards, names + "TCP 8443", []string{"account: lab\n"}},
		"openshift":       {"", "", restricted, names + "TCP 443, UDP 5353, TCP 5353", nil},
		"tls":             {"", "", "ConfigMap:1 Deployment:1 ScrapeConfig:1 Service:1 ServiceAccount:1 ServiceMonitor:1", "any", nil},
		"many":            {"", "", public, "any", []string{"account: main\n", "account: lab\n"}},
		"everything":      {"", "", everything, names + "TCP 3128", []string{"account: vault\n"}},
		"longest names":   {"everything", longest, everything, names + "TCP 3128", nil},
	} {
		t.Run(name, func(t *testing.T) {
			values := cmp.Or(c.values, name)
			args := strings.Fields(c.args)
			mustHelm(t, append([]string{"lint", "--strict", chart, "--values", valuesFile(t, values)}, args...)...)
			all := render(t, values, args...)
			simtest.AssertEqual(t, "kinds", kinds(all), c.kinds)
			simtest.AssertEqual(t, "egress", egress(t, all), c.egress)
			checkMetadata(t, all)
			checkSelectors(t, all)
			checkPod(t, all)
			checkConfig(t, all, append(c.check, "configuration OK")...)
		})
	}
}

// kinds returns how many objects of each kind there are.
func kinds(all objects) string {
	count := map[string]int{}
	for _, o := range all {
		count[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return strings.Trim(fmt.Sprint(count), "map[]")
}

// egress returns the ports to which the exporter may connect, and checks that not everybody
// may connect to it.
func egress(t *testing.T, all objects) string {
	t.Helper()
	policies := objectsOf[*networkingv1.NetworkPolicy](all)
	if len(policies) == 0 {
		return "any"
	}
	var ports []string
	for _, rule := range policies[0].Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, fmt.Sprintf("%s %s", *port.Protocol, port.Port))
		}
	}
	if spec := policies[0].Spec; len(spec.PolicyTypes) != 2 || len(spec.Ingress) != 1 || len(spec.Ingress[0].From) == 0 {
		t.Errorf("everybody may connect: %v", spec)
	}
	return strings.Join(ports, ", ")
}

// checkMetadata checks namespaces, names and labels, and that no object but a Secret contains a
// token.
func checkMetadata(t *testing.T, all objects) {
	t.Helper()
	for _, o := range all {
		m := o.(metav1.Object)
		problems := validation.IsDNS1123Label(m.GetName())
		for key, value := range m.GetLabels() {
			problems = slices.Concat(problems, validation.IsQualifiedName(key), validation.IsValidLabelValue(value))
		}
		if len(problems) > 0 || m.GetNamespace() == "" {
			t.Errorf("%T %s/%s: %v", o, m.GetNamespace(), m.GetName(), problems)
		}
		if _, secret := o.(*corev1.Secret); !secret && strings.Contains(string(simtest.Encode(t, o)), "token-of-") {
			t.Errorf("%T contains a token", o)
		}
	}
}

// checkSelectors checks that objects select the pods, and their ports, and that a ServiceMonitor
// finds each pod once.
func checkSelectors(t *testing.T, all objects) {
	t.Helper()
	template, container := pod(t, all)
	simtest.AssertEqual(t, "ports", container.Ports, []corev1.ContainerPort{{Name: "http", ContainerPort: 10170, Protocol: corev1.ProtocolTCP}})
	for _, c := range template.Spec.TopologySpreadConstraints {
		assertSelects(t, "topologySpreadConstraints", c.LabelSelector.MatchLabels, template.Labels)
	}
	for _, o := range all {
		switch o := o.(type) {
		case *appsv1.Deployment:
			assertSelects(t, "Deployment", o.Spec.Selector.MatchLabels, template.Labels)
		case *appsv1.StatefulSet:
			assertSelects(t, "StatefulSet", o.Spec.Selector.MatchLabels, template.Labels)
			total := container.Env[len(container.Env)-1]
			simtest.AssertEqual(t, "shards", total, corev1.EnvVar{Name: "SERVER_RENTAL_TOTAL_SHARDS", Value: fmt.Sprint(*o.Spec.Replicas)})
			service := object[*corev1.Service](t, all, o.Spec.ServiceName)
			simtest.AssertEqual(t, "clusterIP of the StatefulSet's Service", service.Spec.ClusterIP, corev1.ClusterIPNone)
		case *policyv1.PodDisruptionBudget:
			assertSelects(t, "PodDisruptionBudget", o.Spec.Selector.MatchLabels, template.Labels)
		case *networkingv1.NetworkPolicy:
			assertSelects(t, "NetworkPolicy", o.Spec.PodSelector.MatchLabels, template.Labels)
			simtest.AssertEqual(t, "port of the NetworkPolicy", o.Spec.Ingress[0].Ports[0].Port.String(), "10170")
		case *corev1.Service:
			assertSelects(t, "Service", o.Spec.Selector, template.Labels)
		case *monitoringv1.ServiceMonitor:
			var targets []string
			for _, s := range objectsOf[*corev1.Service](all) {
				set := labels.Set(maps.Clone(s.Labels))
				set["app.kubernetes.io/instance"] = "monitoring_rental" // as Argo CD labels it
				found := labels.SelectorFromSet(o.Spec.Selector.MatchLabels).Matches(set) &&
					(o.Namespace == s.Namespace || slices.Contains(o.Spec.NamespaceSelector.MatchNames, s.Namespace))
				for _, port := range s.Spec.Ports {
					if found && port.Name == o.Spec.Endpoints[0].Port {
						targets = append(targets, port.TargetPort.String())
					}
				}
			}
			simtest.AssertEqual(t, "ports that the ServiceMonitor finds", targets, []string{"http"})
		}
	}
}

// assertSelects checks that a selector matches, and that it has only labels that no upgrade
// changes.
func assertSelects(t *testing.T, what string, selector, set map[string]string) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(selector))
	simtest.AssertEqual(t, what+": labels of the selector", keys, []string{"app.kubernetes.io/instance", "app.kubernetes.io/name"})
	if !labels.SelectorFromSet(selector).Matches(labels.Set(set)) {
		t.Errorf("%s: selector %v does not match labels %v", what, selector, set)
	}
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
	for _, a := range objectsOf[*corev1.ServiceAccount](all) {
		simtest.AssertEqual(t, "ServiceAccount", template.Spec.ServiceAccountName, a.Name)
	}
	var volumes, mounted []string
	for _, v := range template.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, m := range container.VolumeMounts {
		mounted = append(mounted, m.Name)
		if !m.ReadOnly {
			t.Errorf("volume %s is not mounted read-only", m.Name)
		}
	}
	simtest.AssertEqual(t, "mounted volumes", mounted, volumes)
}

// TestImagePullSecrets has Secrets of the chart and of one around it, in both forms that charts know.
func TestImagePullSecrets(t *testing.T) {
	template, _ := pod(t, renderWith(t, "global: {imagePullSecrets: [first, {name: second}]}\nimagePullSecrets: [{name: third}]\n"))
	simtest.AssertEqual(t, "Secrets", template.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "first"}, {Name: "second"}, {Name: "third"}})
}

// TestScrapeConfig checks where Prometheus asks for the servers: each shard has some.
func TestScrapeConfig(t *testing.T) {
	for values, want := range map[string][]string{
		"tls": {"https://rental-server-rental-exporter.monitoring.svc:443/sd/servers?port=9100"},
		"everything": {
			"https://rental-exporter-0.rental-exporter-shards.monitoring.svc:10170/sd/servers?port=9101",
			"https://rental-exporter-1.rental-exporter-shards.monitoring.svc:10170/sd/servers?port=9101",
			"https://rental-exporter-2.rental-exporter-shards.monitoring.svc:10170/sd/servers?port=9101",
		},
	} {
		var got []string
		for _, d := range object[*monitoringv1alpha1.ScrapeConfig](t, render(t, values), "").Spec.HTTPSDConfigs {
			got = append(got, string(d.URL))
		}
		simtest.AssertEqual(t, values, got, want)
	}
}

// TestChecksum checks that a change of the configuration replaces the pods, and that
// nothing else does: a token is read again without that.
func TestChecksum(t *testing.T) {
	checksum := func(set string) string {
		template, _ := pod(t, render(t, "token", "--set", set))
		return template.Annotations["checksum/config"]
	}
	before := checksum("")
	for set, changed := range map[string]bool{
		"config.api.timeout=9s": true, "accounts[0].name=other": true, "accounts[0].token=other": false, "replicaCount=0": false, "shards=3": false,
	} {
		if after := checksum(set); after == "" || (after != before) != changed {
			t.Errorf("%s: got checksum %q, before %q", set, after, before)
		}
	}
}
