package runner

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestLint checks all metrics of a running set with promlint, and that each
// definition is exposed.
func TestLint(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		c := configure(time.Minute, time.Hour)
		c.Watches = exampleWatches()
		h.Change(func(w *simulator.World) { w.GeneratedAt = nil }) // an age of a year is not known
		h.run(c)
		h.settle()
		for _, in := range []bool{false, true} {
			h.setPlan("gpu-rtx-4000-ada", in, "availability", "in_stock")
			h.runFor(2 * time.Minute)
		}
		h.Inject(simtest.Fault{Path: "/plans", Kind: simtest.Respond, Status: 503, Header: http.Header{"Retry-After": {"3600"}}})
		h.runFor(2 * time.Minute)
		lint(t, h.exposition(all))
		got := h.scrape().Families
		for _, d := range slices.Concat(collector.Definitions(), HealthDefinitions(), rentalapi.Definitions()) {
			if got[d.Name].Type != string(d.Type) {
				t.Errorf("%s: got type %q, want %q", d.Name, got[d.Name].Type, d.Type)
			}
		}
	})
}

func exampleWatches() []collector.Watch {
	return []collector.Watch{
		{Name: "europe", Regions: []string{"Europe"}, MaxUSDPerMonth: ptr(500.0)},
		{Name: "gpu", GPU: ptr(true)},
	}
}

func lint(t *testing.T, exposition string) {
	t.Helper()
	problems, err := promlint.New(bytes.NewBufferString(exposition)).Lint()
	if err != nil {
		t.Errorf("promlint: %v", err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
}

func ptr[T any](v T) *T { return &v }
