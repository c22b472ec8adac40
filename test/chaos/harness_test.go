package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/web"
)

// harness is the exporter without sockets and a simulated provider of which every
// past state is known, in one synctest bubble.
type harness struct {
	*simtest.API
	*runner.Runner
	t       *testing.T
	handler http.Handler
	log     simtest.Log
	format  string // that the scraper accepts
	coding  string // that the scraper accepts
	ctx     context.Context
	cancel  context.CancelFunc

	configMu sync.Mutex
	config   configuration
	reloaded time.Time
	limits   rentalapi.Limits // the highest of all configurations

	worldMu   sync.Mutex
	tokens    map[string]*tokenFile // by account
	customers []*simulator.Account
	history   map[string][]version // by collector and account
	restocks  map[string]float64   // by plan
	sellouts  map[string]float64
	issued    int // tokens
}

// configuration is the exporter's configuration.
type configuration struct {
	api        string
	collectors map[string]runner.Timing
	accounts   []string
	limits     rentalapi.Limits
}

// tokenFile is the content of an account's token file.
type tokenFile struct {
	token    string
	customer int
	err      error // of reading it
}

// version is a past state of a resource.
type version struct {
	samples  samples
	from, to time.Time // to is zero for the present state
	customer int
}

// accountNames are the accounts that may be configured.
func accountNames() []string { return []string{"main", "lab", "spare"} }

const requestTimeout = 10 * time.Second

func newHarness(t *testing.T, rng *rand.Rand) *harness {
	o := simulator.Options{}
	if rng.IntN(2) == 0 { // a provider that rejects nothing, so that broken limits show
		o.PublicLimit, o.AccountLimit = -1, -1
	}
	h := &harness{
		API: simtest.StartInMemory(t, o), t: t, format: pick(rng, formats()...), coding: pick(rng, "identity", "gzip"),
		config: validConfiguration(rng), tokens: map[string]*tokenFile{}, history: map[string][]version{},
		restocks: map[string]float64{}, sellouts: map[string]float64{},
	}
	h.populate(rng)
	h.ctx, h.cancel = context.WithCancel(t.Context())
	h.Runner = runner.New(runner.Options{Logger: &h.log, UserAgent: "chaos", API: h.apiSettings()})
	registry := prometheus.NewRegistry()
	h.handler = web.Handler(h.Runner, web.Options{
		Version: "chaos", MetricsPath: "/metrics", Published: h.Publisher,
		Metrics: &exposition.Handler{
			Publisher: h.Publisher, Gatherer: registry, OnError: func(cause string, err error) { t.Error(cause, err) },
		},
		Discovery: func(account string) (collector.Servers, error) {
			return collector.ActiveServers(h.Accounts(), account)
		},
		Configured: func() web.Configured {
			return web.Configured{API: "a simulated provider", Accounts: len(h.config.accounts)}
		},
	})
	h.Run(h.ctx)
	h.applyConfig()
	return h
}

// close stops the exporter and the provider. The bubble reports goroutines that are left.
func (h *harness) close() {
	h.cancel()
	h.Wait()
	h.Close()
}

// populate creates three customers: one with a short history, one whose transactions
// fill pages, one whose top-ups do.
func (h *harness) populate(rng *rand.Rand) {
	h.changeWorld(func(w *simulator.World) {
		clear(w.Accounts)
		w.SendsAge = rng.IntN(2) == 0
		for i, name := range accountNames() {
			a := simulator.ExampleAccount(fmt.Sprint("customer", i), time.Now())
			a.Transactions = simulator.Transactions(20, time.Now())
			switch i {
			case 1:
				a.Transactions = simulator.Transactions(150+rng.IntN(450), time.Now())
			case 2:
				a.Topups = append(a.Topups, simulator.Topups(100+rng.IntN(150), time.Now())...)
			}
			h.customers = append(h.customers, a)
			w.Accounts[customerToken(i)] = a
			h.tokens[name] = &tokenFile{customer: i}
			h.issueToken(w, name)
		}
	})
}

// customerToken is a token that the exporter does not have, for expectations.
func customerToken(customer int) string { return fmt.Sprint("secret-of-customer-", customer) }

// issueToken gives an account a new token of its customer.
func (h *harness) issueToken(w *simulator.World, account string) {
	h.issued++
	f := h.tokens[account]
	f.token = fmt.Sprintf("secret-%s-%d", account, h.issued)
	w.Accounts[f.token] = h.customers[f.customer]
}

// changeWorld changes the provider's data or the token files, and records what each
// resource results in from now on.
func (h *harness) changeWorld(change func(w *simulator.World)) {
	h.worldMu.Lock()
	defer h.worldMu.Unlock()
	h.Change(func(w *simulator.World) {
		before := stock(w)
		change(w)
		now := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
		w.GeneratedAt, w.Status["updated_at"] = now, now
		for id, in := range stock(w) {
			switch was, known := before[id]; {
			case !known || was == in:
			case in:
				h.restocks[id]++
			default:
				h.sellouts[id]++
			}
		}
	})
	for _, r := range collector.Resources() {
		if !r.Account {
			h.record(r.Name, "", -1, presentState(h.t, r, getter{api: h.API}, ""))
			continue
		}
		for account, f := range h.tokens {
			h.record(r.Name, account, f.customer, presentState(h.t, r, getter{h.API, customerToken(f.customer)}, account))
		}
	}
}

func stock(w *simulator.World) map[string]bool {
	stock := map[string]bool{}
	for _, p := range w.Plans {
		if in, known := simulator.At(p, "availability", "in_stock").(bool); known {
			stock[simulator.Text(p, "id")] = in
		}
	}
	return stock
}

func (h *harness) record(name, account string, customer int, present samples) {
	key, now := name+" "+account, time.Now()
	versions := h.history[key]
	if n := len(versions); n > 0 {
		if versions[n-1].customer == customer && maps.Equal(versions[n-1].samples, present) {
			return
		}
		versions[n-1].to = now
	}
	h.history[key] = append(versions, version{samples: present, from: now, customer: customer})
}

// versionsSince returns the versions of a resource that held at any time from then on.
func (h *harness) versionsSince(name, account string, then time.Time) []version {
	h.worldMu.Lock()
	defer h.worldMu.Unlock()
	versions := slices.Clone(h.history[name+" "+account])
	return slices.DeleteFunc(versions, func(v version) bool { return !v.to.IsZero() && v.to.Before(then) })
}

// reload changes the configuration and applies it.
func (h *harness) reload(change func(c *configuration)) {
	h.configMu.Lock()
	defer h.configMu.Unlock()
	change(&h.config)
	h.reloaded = time.Now()
	h.Runner.API.ApplySettings(h.apiSettings())
	h.applyConfig()
}

func (h *harness) apiSettings() rentalapi.Settings {
	transport := rentalapi.NewTransport(promconfig.HTTPClientConfig{}, h.Dial)
	h.limits.Public = max(h.limits.Public, h.config.limits.Public)
	h.limits.Account = max(h.limits.Account, h.config.limits.Account)
	return rentalapi.Settings{BaseURL: h.URL, Transport: transport, Timeout: requestTimeout, Limits: h.config.limits}
}

func (h *harness) applyConfig() {
	c := runner.Spec{API: h.config.api, Collectors: maps.Clone(h.config.collectors)}
	for _, name := range h.config.accounts {
		c.Accounts = append(c.Accounts, runner.AccountSpec{Name: name, Identity: "file " + name, Token: func() (string, error) {
			h.worldMu.Lock()
			defer h.worldMu.Unlock()
			return h.tokens[name].token, h.tokens[name].err
		}})
	}
	h.ApplyConfig(h.ctx, c)
}

// validConfiguration enables all collectors and accounts.
func validConfiguration(rng *rand.Rand) configuration {
	c := configuration{api: "one", collectors: map[string]runner.Timing{}, accounts: accountNames(), limits: randomLimits(rng)}
	for _, r := range collector.Resources() {
		c.collectors[r.Name] = randomSettings(rng, r)
	}
	return c
}

func randomLimits(rng *rand.Rand) rentalapi.Limits {
	l := rentalapi.Limits{Public: 10 + rng.IntN(50), Account: 60 + rng.IntN(61)}
	l.AccountBulk = l.Account / 2
	return l
}

func randomSettings(rng *rand.Rand, r collector.Resource) runner.Timing {
	interval := max(r.MinInterval, 30*time.Second) + time.Duration(rng.IntN(120))*time.Second
	return runner.Timing{Interval: interval, MaxAge: 2*interval + time.Duration(rng.Int64N(int64(6*time.Minute)))}
}

var errUnreadable = errors.New("permission denied")
