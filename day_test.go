package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/memnet"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
)

// A simulated provider under the test's clock: connections are pipes, and what
// the provider sees is noted before anything else happens to it.
type provider struct {
	sim    *simulator.Simulator
	server *http.Server
	net    *memnet.Listener

	mu      sync.Mutex
	arrived map[string][]time.Time // by token; empty for public
}

func newProvider(t *testing.T, o simulator.Options) *provider {
	t.Helper()
	p := &provider{
		sim: simulator.New(o), net: memnet.Listen(), arrived: map[string][]time.Time{},
	}
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("Authorization")
		p.mu.Lock()
		p.arrived[token] = append(p.arrived[token], time.Now())
		p.mu.Unlock()
		p.sim.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(p.net) }()
	t.Cleanup(func() { _ = p.server.Close() })
	return p
}

func (p *provider) settings(t *testing.T, limits rentalapi.Limits) rentalapi.Settings {
	t.Helper()
	transport, err := rentalapi.NewTransport(promconfig.HTTPClientConfig{}, promconfig.WithDialContextFunc(p.net.Dial))
	if err != nil {
		t.Fatal(err)
	}
	return rentalapi.Settings{
		BaseURL:   &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/api/v1"},
		Transport: transport, Timeout: 10 * time.Second, Limits: limits,
	}
}

// day is one run of the exporter's collectors through bad times.
type day struct {
	length   time.Duration
	accounts int
	limits   rentalapi.Limits
	interval time.Duration // of the account collectors; 0 for the defaults
	history  int           // transactions of each account
	trouble  time.Duration // mean time between two events
	healthy  bool          // the provider works; all trouble is the operator's
}

// TestBudgets is the proof of the promise: whatever happens, in no window of 60
// seconds does the provider see 60 public requests, nor 121 with one token.
func TestBudgets(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a simulated day")
	}
	for name, d := range map[string]day{
		"a day of 20 accounts at the default pace": {
			length: 24 * time.Hour, accounts: 20, history: 800, trouble: 4 * time.Minute,
			limits: rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 40},
		},
		"two hours of 3 accounts that want more than they may": {
			length: 2 * time.Hour, accounts: 3, history: 5_000, trouble: time.Minute, interval: time.Second,
			limits: rentalapi.Limits{Public: 59, Account: 120, AccountBulk: 60},
		},
		"half an hour of reloads that switch collectors": {
			length: 30 * time.Minute, accounts: 2, history: 300, trouble: 100 * time.Millisecond, healthy: true,
			limits: rentalapi.Limits{Public: 59, Account: 120, AccountBulk: 60},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			synctest.Test(t, func(t *testing.T) { d.run(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func (d day) run(t *testing.T, rng *rand.Rand) {
	// The provider refuses nothing by itself, so that a broken promise shows.
	p := newProvider(t, simulator.Options{PublicLimit: -1, AccountLimit: -1, KeepRequests: -1})
	p.sim.Change(func(w *simulator.World) {
		for i := range d.accounts {
			a := simulator.ExampleAccount(fmt.Sprint(i), time.Now())
			a.Transactions = simulator.Transactions(d.history, time.Now())
			a.Topups = append(a.Topups, simulator.Topups(d.history/4, time.Now())...)
			for _, suffix := range []string{"", "-new"} { // both tokens of a rotation
				w.Accounts[fmt.Sprintf("token-%d%s", i, suffix)] = a
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	client := rentalapi.New("test", p.settings(t, d.limits))
	set := collector.New(log.NewNopLogger(), client)
	tr := &troubles{day: d, rng: rng, provider: p, rotated: map[int]bool{}, off: map[string]bool{}}
	set.Apply(ctx, tr.config())

	for end := time.Now().Add(d.length); time.Now().Before(end); {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(d.trouble)))
		if tr.next() {
			client.Configure(p.settings(t, d.limits))
			set.Apply(ctx, tr.config())
		}
	}
	stop()
	set.Wait()
	tr.end()
	time.Sleep(time.Minute) // connections that are still coming up give up
	_ = p.server.Close()

	total, busiest := 0, 0
	for token, times := range p.arrived {
		total += len(times)
		most := simulator.Peak(times)
		if token == "" {
			t.Logf("public: at most %d requests within 60 s", most)
			if most > 59 {
				t.Errorf("public: %d requests within 60 s, more than 59", most)
			}
			continue
		}
		busiest = max(busiest, most)
		if most > 120 {
			t.Errorf("%s: %d requests within 60 s, more than 120", token, most)
		}
	}
	t.Logf("tokens: at most %d requests within 60 s", busiest)
	t.Logf("%d requests, of which %d public, with %d tokens; %d faults, %d reloads", total, len(p.arrived[""]), len(p.arrived)-1, tr.faults, tr.reloads)
	if len(p.arrived[""]) < int(d.length.Minutes()) {
		t.Errorf("only %d public requests in %v: the exporter hardly asked", len(p.arrived[""]), d.length)
	}
}

// troubles is what happens to the provider and the exporter.
type troubles struct {
	day
	rng      *rand.Rand
	provider *provider
	removes  []func()
	rotated  map[int]bool
	off      map[string]bool
	fewer    int // accounts left out
	faults   int
	reloads  int
}

// next makes one thing happen and tells whether the configuration changed.
func (tr *troubles) next() bool {
	n := tr.rng.IntN(12)
	if tr.healthy {
		n = 7 + tr.rng.IntN(5)
	}
	switch {
	case n < 6:
		tr.fault()
	case n == 6:
		tr.end()
	case n == 7: // the network becomes slow, or fast again
		most := time.Duration(tr.rng.IntN(2)) * 4 * time.Second
		tr.provider.net.SetDialDelay(func() time.Duration { return time.Duration(rand.Int64N(int64(most) + 1)) })
	case n == 8: // a token is replaced, or the old one put back
		i := tr.rng.IntN(tr.accounts)
		tr.rotated[i] = !tr.rotated[i]
	case n == 9: // money moves: more history
		tr.provider.sim.Change(func(w *simulator.World) {
			a := w.Accounts[fmt.Sprintf("token-%d", tr.rng.IntN(tr.accounts))]
			id := 10_000_000 + tr.faults + len(a.Transactions)
			a.Transactions = append([]simulator.Object{{
				"id": id, "type": "usage", "amount": simulator.Object{"usd": -1.25}, "created_at": "2000-01-01T00:00:00Z",
			}}, a.Transactions...)
		})
	case n == 10: // a reload that drops accounts, or brings them back
		tr.fewer = tr.rng.IntN(3)
		tr.reloads++
		return true
	default: // a reload that switches a collector
		all := collector.Resources()
		name := all[tr.rng.IntN(len(all))].Name
		tr.off[name] = !tr.off[name]
		tr.reloads++
		return true
	}
	return false
}

// fault lets the provider misbehave in any of its ways, anywhere.
func (tr *troubles) fault() {
	paths := []string{""}
	for _, r := range collector.Resources() {
		paths = append(paths, r.Endpoint)
	}
	statuses := []int{401, 404, 429, 500, 502, 503}
	waits := []string{"", "1", "7", "90", "soon", "0", "-3", "99999999999", time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)}
	f := simulator.Fault{
		Kind:  simulator.Kind(tr.rng.IntN(int(simulator.Redirect) + 1)),
		Path:  paths[tr.rng.IntN(len(paths))],
		Times: tr.rng.IntN(30),
		Delay: time.Duration(tr.rng.Int64N(int64(15 * time.Second))),
	}
	switch f.Kind {
	case simulator.Respond:
		f.Status = statuses[tr.rng.IntN(len(statuses))]
		f.Header = http.Header{"Retry-After": {waits[tr.rng.IntN(len(waits))]}}
		if tr.rng.IntN(3) == 0 {
			f.Status = 0
			f.Header = http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {waits[tr.rng.IntN(len(waits))]}}
		}
	case simulator.Redirect:
		f.Header = http.Header{"Location": {"https://elsewhere.example/"}}
	case simulator.Endless:
		f.Times = 1 + tr.rng.IntN(3) // each costs the test real time
	}
	tr.faults++
	tr.removes = append(tr.removes, tr.provider.sim.Inject(f))
	if len(tr.removes) > 4 {
		tr.removes[0]()
		tr.removes = tr.removes[1:]
	}
}

// end ends all faults.
func (tr *troubles) end() {
	for _, remove := range tr.removes {
		remove()
	}
	tr.removes = nil
}

// config is what the exporter is told to collect.
func (tr *troubles) config() collector.Config {
	c := collector.Config{API: "simulated", Collectors: map[string]refresh.Settings{}}
	for _, r := range collector.Resources() {
		if tr.off[r.Name] {
			continue
		}
		s := refresh.Settings{Interval: r.Interval, MaxAge: r.MaxAge}
		if r.Account && tr.interval > 0 {
			s.Interval = tr.interval
		}
		c.Collectors[r.Name] = s
	}
	for i := range tr.accounts - tr.fewer {
		c.Accounts = append(c.Accounts, collector.Account{
			Name: fmt.Sprint(i), Identity: fmt.Sprint(i),
			Token: func() (string, error) {
				if tr.rotated[i] {
					return fmt.Sprintf("token-%d-new", i), nil
				}
				return fmt.Sprintf("token-%d", i), nil
			},
		})
	}
	return c
}
