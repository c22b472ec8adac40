package helm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// route is what both kinds of configuration say of a route, with the names of alertmanager.yml.
type route struct {
	Receiver      string
	GroupBy       []string `yaml:"group_by" json:"groupBy"`
	GroupWait     string   `yaml:"group_wait" json:"groupWait"`
	GroupInterval string   `yaml:"group_interval" json:"groupInterval"`
}

// TestAlertmanagerConfig compares the routes and the address of README.md with those of
// alerts/alertmanager.yml.
func TestAlertmanagerConfig(t *testing.T) {
	blocks := readmeBlocks(t)
	example := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, "kind: AlertmanagerConfig") })
	spec := object[*monitoringv1alpha1.AlertmanagerConfig](t, renderWith(t, blocks[example]), "rental").Spec
	var got []route
	for _, raw := range spec.Route.Routes {
		var r route
		if err := json.Unmarshal(raw.Raw, &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	var want struct {
		Route struct {
			RepeatInterval string `yaml:"repeat_interval"`
			Routes         []route
		}
		Receivers []struct {
			Webhooks []struct{ URL string } `yaml:"webhook_configs"`
		}
	}
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.yml"), &want)
	simtest.AssertEqual(t, "routes", got, want.Route.Routes)
	simtest.AssertEqual(t, "repeat_interval", string(*spec.Route.RepeatInterval), want.Route.RepeatInterval)
	simtest.AssertEqual(t, "address", *spec.Receivers[1].WebhookConfigs[0].URL, want.Receivers[1].Webhooks[0].URL)
}
