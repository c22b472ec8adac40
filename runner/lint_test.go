package runner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestLint checks all metrics of a running set with promlint, and that all are
// exposed.
func TestLint(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := configure(time.Minute, time.Hour)
		c.Watches = []collector.Watch{{Name: "gpu", GPU: ptr(true)}}
		h.Change(func(w *simulator.World) { w.GeneratedAt = nil }) // an age of a year is not known
		h.run(c)
		h.settle()
		for _, in := range []bool{false, true, false} {
			h.setStock("gpu-rtx-4000-ada", in)
			h.Change(func(w *simulator.World) {
				w.SetStock("ryzen-9-9950x", "fra", in) // is a saved configuration
				w.Accounts[simtest.MainToken].SSHKeys[0]["fingerprint"] = fmt.Sprint(in)
			})
			h.runFor(2 * time.Minute)
		}
		h.Inject(simtest.Fault{Path: "/plans", Status: 503, Header: map[string][]string{"Retry-After": {"3600"}}})
		h.runFor(2 * time.Minute)
		h.set.Publisher.Publish()
		families, err := h.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		h.assertEqual("promlint", []any{problems, err}, []any{[]promlint.Problem(nil), error(nil)})
		exposed := map[string]bool{}
		for _, f := range families {
			exposed[f.GetName()] = true
		}
		for _, d := range slices.Concat(collector.Definitions(), HealthDefinitions(), rentalapi.Definitions()) {
			if !exposed[d.Name] {
				t.Errorf("not exposed: %s", d.Name)
			}
		}
	})
}

func ptr[T any](v T) *T { return &v }
