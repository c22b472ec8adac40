package exporter

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestDemoHits asserts that a watch of the demo hits every few minutes.
func TestDemoHits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		go a.Run(t.Context())
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
		transport, err := rentalapi.NewTransport(promconfig.HTTPClientConfig{}, a.Dial)
		if err != nil {
			t.Fatal(err)
		}
		r := runner.New(runner.Options{Logger: log.NewNopLogger(), UserAgent: "test", API: rentalapi.Settings{
			BaseURL: a.URL, Transport: transport, Timeout: 10 * time.Second, Limits: rentalapi.Limits{Public: 30},
		}})
		r.ApplyConfig(t.Context(), runnerConfig(cfg))
		t.Cleanup(r.Wait) // the context of the test has ended by then
		time.Sleep(time.Hour)
		r.Publisher.Publish()
		hits := map[string]float64{}
		for series, n := range simtest.ServeGet(newMetrics(r).handler(log.NewNopLogger()), "/metrics").Exposition(t).WithPrefix("server_rental_watch_hits_total{") {
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
	const watchesYAML = `watches:
  - {name: cheap-in-europe, regions: [europe], min_memory_gib: 64, max_usd_per_month: 99.90}
  - {name: gpu, gpu: true}
`
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
