//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestLoadHistory runs the commands of the compose demo's document that load a history,
// for a day, and asks a Prometheus for the data.
func TestLoadHistory(t *testing.T) {
	t.Parallel()
	repo.Program(t, "promtool")
	end := time.Now().Add(-time.Hour).Truncate(3 * time.Minute).Add(time.Minute) // between two samples
	blocks := slices.DeleteFunc(repo.Documents(t)["deploy/compose/README.md"].Blocks, func(b repo.Block) bool { return !strings.Contains(b.Comment, t.Name()) })
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of commands name this test, want 1", len(blocks))
	}
	d := newDocumented(t, "", "")
	d.env = []string{"DAYS=1", fmt.Sprint("END=", end.Unix()), "LISTEN=" + simtest.FreeAddress(t)}
	d.run(blocks[0])

	data := filepath.Join(d.dir, "dist", "data")
	loaded, _ := filepath.Glob(data + "/*")
	d.run(blocks[0])
	again, _ := filepath.Glob(data + "/*")
	simtest.AssertEqual(t, "blocks after the second time", again, loaded)

	p := startPrometheus(t, filepath.Dir(data), "global: {}\n")
	if up := p.queryAt(end, `up{job="server_rental", instance="exporter:10170"}`); len(up) != 1 || up[0].Value != 1 {
		t.Errorf("got up %v, want 1 for the target of the demo", up)
	}
	if gaps := p.queryAt(end, "count_over_time(absent(up)[23h:1m])"); len(gaps) > 0 {
		t.Errorf("no scrape for %v minutes", gaps[0].Value)
	}
	// Results of rules. Some rules read what others recorded.
	for expr, want := range map[string]model.SampleValue{
		"count(plan:server_rental_plan_in_stock:avg90d)":                           15,
		"count(account_configuration:server_rental_configuration_in_stock:avg30d)": 6,
		"max(count_over_time(plan:server_rental_plan_in_stock:max[1h]))":           20,
		`count({__name__=~"ServerRental.*"}) or vector(0)`:                         0,
	} {
		for _, when := range []time.Time{end.Add(-time.Hour), end.Add(-20 * time.Hour)} {
			if got := p.queryAt(when, expr); len(got) != 1 || got[0].Value != want {
				t.Errorf("%s: got %v at %v, want %v", expr, got, when, want)
			}
		}
	}
	// The day has changes of every kind.
	const changed = `count(count by (__name__) ({__name__=~"server_rental_(plan_(restocks|sellouts)_total|configuration_restocks_total|watch_hits_total|` +
		`(plan_last_restock|watch_last_hit|account_funded_until)_timestamp_seconds)"} > 0))`
	if got := p.queryAt(end, changed); len(got) != 1 || got[0].Value != 7 {
		t.Errorf("got %v metrics that changed, want 7", got)
	}
	for _, mean := range []string{"stay", "away"} {
		if got := p.queryAt(end, "plan:server_rental_plan_"+mean+"_seconds:avg30d"); len(got) == 0 {
			t.Errorf("no mean of %s", mean)
		}
	}
}
