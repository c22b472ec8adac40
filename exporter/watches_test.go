package exporter

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

const watchesYAML = `watches:
  - {name: cheap-in-europe, regions: [europe], min_memory_gib: 64, max_usd_per_month: 99.90}
  - {name: gpu, gpu: true}
`

// TestWatchRestock has a plan come back for a minute: from the configuration file to
// the scrape, which comes after it has sold out again.
func TestWatchRestock(t *testing.T) {
	t.Parallel()
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "rental.yml"), "api: {base_url: \"https://rental.example/api/v1\"}\n"+watchesYAML)
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		o, err := parse([]string{"--config.file=" + file}, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := o.load(env())
		if err != nil {
			t.Fatal(err)
		}
		p := newPipeline(t, a)
		p.ApplyConfig(p.ctx, runnerConfig(cfg))
		time.Sleep(time.Minute)
		synctest.Wait()
		want := map[string]float64{
			`server_rental_watch_plans{watch="cheap-in-europe"}`: 3, `server_rental_watch_plans{watch="gpu"}`: 2,
			`server_rental_watch_plans_in_stock{watch="cheap-in-europe"}`: 2, `server_rental_watch_plans_in_stock{watch="gpu"}`: 1,
			`server_rental_watch_plan_in_stock{plan="ryzen-5-3600",watch="cheap-in-europe"}`: 0,
			`server_rental_watch_plan_in_stock{plan="ryzen-5-7600",watch="cheap-in-europe"}`: 1,
			`server_rental_watch_plan_in_stock{plan="xeon-e-2388g",watch="cheap-in-europe"}`: 1,
			`server_rental_watch_plan_in_stock{plan="gpu-l40s",watch="gpu"}`:                 0,
			`server_rental_watch_plan_in_stock{plan="gpu-rtx-4000-ada",watch="gpu"}`:         1,
			`server_rental_watch_hits_total{plan="ryzen-5-3600",watch="cheap-in-europe"}`:    0,
			`server_rental_watch_hits_total{plan="ryzen-5-7600",watch="cheap-in-europe"}`:    0,
			`server_rental_watch_hits_total{plan="xeon-e-2388g",watch="cheap-in-europe"}`:    0,
			`server_rental_watch_hits_total{plan="gpu-l40s",watch="gpu"}`:                    0,
			`server_rental_watch_hits_total{plan="gpu-rtx-4000-ada",watch="gpu"}`:            0,
		}
		simtest.AssertEqual(t, "series at first", p.scrape().WithPrefix("server_rental_watch_"), want)
		for _, inStock := range []bool{true, false} {
			a.Change(func(w *simulator.World) {
				for _, p := range w.Plans {
					if simulator.Text(p, "id") == "ryzen-5-3600" {
						simulator.Put(p, inStock, "availability", "in_stock")
					}
				}
			})
			time.Sleep(65 * time.Second)
			if inStock {
				want[`server_rental_watch_last_hit_timestamp_seconds{watch="cheap-in-europe"}`] = p.scrape().Values[`server_rental_plan_stock_changed_timestamp_seconds{plan="ryzen-5-3600"}`]
			}
		}
		synctest.Wait()
		want[`server_rental_watch_hits_total{plan="ryzen-5-3600",watch="cheap-in-europe"}`] = 1
		simtest.AssertEqual(t, "series after a restock", p.scrape().WithPrefix("server_rental_watch_"), want)
	})
}

// TestDemoHits asserts that a watch of the demo hits every few minutes.
func TestDemoHits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go a.Run(ctx)
		o, err := parse([]string{"--demo"}, t.Output())
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := o.load(env())
		if err != nil {
			t.Fatal(err)
		}
		(&demo{base: a.URL}).applyTo(cfg)
		cfg.Accounts = nil
		p := newPipeline(t, a)
		p.ApplyConfig(p.ctx, runnerConfig(cfg))
		time.Sleep(time.Hour)
		synctest.Wait()
		hits := map[string]float64{}
		for series, n := range p.scrape().WithPrefix("server_rental_watch_hits_total{") {
			hits[simtest.Label(series, "watch")] += n
		}
		if n := hits["midrange"]; n < 8 || n > 20 || len(hits) != 3 {
			t.Errorf("got hits within an hour %v", hits)
		}
	})
}

// TestReloadWatches asserts that a reload applies watches to the data that is there.
func TestReloadWatches(t *testing.T) {
	t.Parallel()
	a, dir := simtest.Start(t, simulator.Options{}), t.TempDir()
	p := startReady(t, "--config.file="+a.ConfigFile(dir, nil, hourly()+watchesYAML))
	requests := len(a.Requests())
	a.ConfigFile(dir, nil, hourly()+strings.Replace(watchesYAML, "64", "256", 1)+"  - {name: fra, locations: [fra]}\n")
	p.reload()
	want := map[string]float64{
		`server_rental_watch_plans{watch="cheap-in-europe"}`: 0, `server_rental_watch_plans{watch="gpu"}`: 2, `server_rental_watch_plans{watch="fra"}`: 14,
	}
	simtest.Eventually(t, "the new watch is exposed", func() bool { return len(p.scrape().WithPrefix("server_rental_watch_plans{")) == len(want) })
	simtest.AssertEqual(t, "plans", p.scrape().WithPrefix("server_rental_watch_plans{"), want)
	simtest.AssertEqual(t, "requests", len(a.Requests()), requests)

	// An invalid watch changes nothing.
	a.ConfigFile(dir, nil, "watches: [{name: all}]\n")
	p.reload()
	simtest.AssertEqual(t, "plans after a failed reload", p.scrape().WithPrefix("server_rental_watch_plans{"), want)
	if cause := "rental.yml:2: watches[0]: no criterion"; !strings.Contains(p.log.String(), cause) {
		t.Errorf("the log lacks %q", cause)
	}
}
