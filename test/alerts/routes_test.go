package alerts_test

import (
	"regexp"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// TestGroupWaits compares what docs/operations.md says about how long Alertmanager waits
// with the routes of the example.
func TestGroupWaits(t *testing.T) {
	var config struct {
		Route struct {
			Routes []struct {
				Matchers  []string
				GroupWait string `yaml:"group_wait"`
			}
		}
	}
	repo.ReadYAML(t, repo.Path(t, "alerts/alertmanager.example.yml"), &config)
	got, want := map[string]string{}, map[string]string{}
	for _, s := range regexp.MustCompile("`(\\d+[sm])` for ((?:(?: and )?`ServerRental\\w+`)+)").FindAllStringSubmatch(repo.Read(t, "docs/operations.md"), -1) {
		for _, alert := range strings.Split(s[2], " and ") {
			alert = strings.Trim(alert, "`")
			got[alert] = s[1]
			for _, r := range config.Route.Routes {
				name, matches := strings.CutPrefix(r.Matchers[0], "alertname=~")
				if _, done := want[alert]; !done && matches && regexp.MustCompile("^"+strings.Trim(name, `"`)+"$").MatchString(alert) {
					want[alert] = r.GroupWait
				}
			}
		}
	}
	simtest.AssertEqual(t, "waits that docs/operations.md gives", got, want)
	simtest.AssertEqual(t, "alerts", len(got), 3)
}
