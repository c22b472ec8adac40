package exporter

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/web"
)

// runningPipeline is a pipeline with all pages, fed from a provider in memory.
type runningPipeline struct {
	*runner.Runner
	t       *testing.T
	ctx     context.Context
	handler http.Handler
}

// startPipeline runs all collectors, as configured by default.
func startPipeline(t *testing.T, a *simtest.API, accounts ...runner.Account) *runningPipeline {
	t.Helper()
	p := newPipeline(t, a)
	p.applyConfig(accounts...)
	return p
}

// newPipeline runs a pipeline without collectors.
func newPipeline(t *testing.T, a *simtest.API) *runningPipeline {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &runningPipeline{Runner: runner.New(runner.Options{Logger: log.NewNopLogger(), UserAgent: "test", API: inMemory(t, a, rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 50})}), t: t, ctx: ctx}
	t.Cleanup(func() {
		stop()
		p.Wait()
	})
	p.handler = NewHandler(p.Runner, log.NewNopLogger(), web.Options{API: func() string { return "" }, MetricsPath: "/metrics"})
	p.Publish(ctx)
	return p
}

// applyConfig is a reload with these accounts.
func (p *runningPipeline) applyConfig(accounts ...runner.Account) {
	c := runner.Config{Collectors: map[string]refresh.Settings{}, Accounts: accounts}
	for _, r := range collector.Resources() {
		c.Collectors[r.Name] = refresh.Settings{Interval: r.Interval, MaxAge: r.MaxAge}
	}
	p.ApplyConfig(p.ctx, c)
}

// mainAccount and labAccount are the accounts that every provider has.
func mainAccount() runner.Account {
	return runner.Account{Name: "main", Token: func() (string, error) { return simtest.MainToken, nil }}
}

func labAccount() runner.Account {
	return runner.Account{Name: "lab", Token: func() (string, error) { return simtest.LabToken, nil }}
}

func (p *runningPipeline) ready() bool {
	return simtest.ServeGet(p.handler, "/-/ready").Status == http.StatusOK
}

func (p *runningPipeline) scrape() simtest.Exposition {
	p.t.Helper()
	return simtest.ServeGet(p.handler, "/metrics").Exposition(p.t)
}

// waitReady polls until the pipeline is ready. Polls are at the same instants as the
// answers of the provider, and several at each, so that they compete with the
// goroutines that process the answers.
func (p *runningPipeline) waitReady() {
	p.t.Helper()
	for range 60_000 {
		for range 20 {
			if p.ready() {
				return
			}
			runtime.Gosched()
		}
		time.Sleep(time.Millisecond)
	}
	p.t.Fatal("not ready within a minute")
}

// TestReadyAfterPublishing asserts that the scrape that follows readiness has the
// outcome of every first fetch, whatever the order and the delay of the answers.
func TestReadyAfterPublishing(t *testing.T) {
	t.Parallel()
	const seed = 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		delays, failing := map[string]time.Duration{}, ""
		want := success(1, "main", "lab")
		for _, r := range collector.Resources() {
			delays[r.Endpoint] = time.Duration(rng.IntN(3)) * time.Millisecond
			if rng.IntN(20) == 0 && failing == "" && !r.Account {
				failing, want[r.Name] = r.Endpoint, 0
			}
		}
		synctest.Test(t, func(t *testing.T) {
			a := simtest.StartInMemory(t, simulator.Options{})
			a.OnRequest(func(path string, _ url.Values) { time.Sleep(delays[path]) })
			if failing != "" {
				a.Inject(simtest.Fault{Path: failing, Status: 500})
			}
			p := startPipeline(t, a, mainAccount(), labAccount())
			p.waitReady()
			first := p.scrape()
			time.Sleep(2 * time.Second) // less than any interval
			simtest.AssertEqual(t, "collectors in the first scrape", first.CollectorSuccess(), want)
			simtest.AssertEqual(t, "data in the first scrape", first.Data(), p.scrape().Data())
		})
		if t.Failed() {
			return
		}
	}
}

// TestReadyDuringHistoryWalk asserts that a long history delays readiness until its
// first page only.
func TestReadyDuringHistoryWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pages = 12
		a := simtest.StartInMemory(t, simulator.Options{})
		a.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Transactions = simulator.Transactions(pages*rentalapi.MaxPageItems, time.Now())
		})
		const delay = 50 * time.Millisecond
		a.OnRequest(func(path string, _ url.Values) {
			if path == "/transactions" {
				time.Sleep(delay)
			}
		})
		start := time.Now()
		p := startPipeline(t, a, mainAccount())
		p.waitReady()
		if took := time.Since(start); took < delay || took > 2*delay {
			t.Errorf("ready after %v, want %v: after the first page", took, delay)
		}
		want := success(1, "main")
		delete(want, "transactions main")
		first := p.scrape()
		simtest.AssertEqual(t, "collectors in the first scrape", first.CollectorSuccess(), want)
		simtest.AssertEqual(t, "transactions in the first scrape", first.WithPrefix("server_rental_transactions"), map[string]float64{})
		const transactions = "server_rental_transactions{"
		for len(p.scrape().WithPrefix(transactions)) == 0 {
			if time.Since(start) > time.Minute {
				t.Fatal("the history was not read within a minute")
			}
			if !p.ready() {
				t.Fatal("not ready any more during the walk")
			}
			time.Sleep(delay)
		}
		sum := 0.0
		for _, n := range p.scrape().WithPrefix(transactions) {
			sum += n
		}
		simtest.AssertEqual(t, "transactions", sum, float64(pages*rentalapi.MaxPageItems))
	})
}

// TestReadyAfterReload asserts that the pipeline stays ready while a new account is
// fetched for the first time.
func TestReadyAfterReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		p := startPipeline(t, a, mainAccount())
		if p.ready() {
			t.Error("ready before the first fetch")
		}
		p.waitReady()
		a.Inject(simtest.Fault{Token: simtest.LabToken, Kind: simtest.Hang})
		p.applyConfig(mainAccount(), labAccount())
		for range 50 {
			if !p.ready() {
				t.Fatal("not ready after a reload")
			}
			time.Sleep(100 * time.Millisecond)
		}
		simtest.AssertEqual(t, "collectors", p.scrape().CollectorSuccess(), success(1, "main"))
	})
}
