package campaign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/memnet"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/web"
)

// A stage is the whole exporter, without sockets, before a simulated provider of
// which every past state is known. All of it lives in one bubble of synctest.
type stage struct {
	t       *testing.T
	sim     *simulator.Simulator
	net     *memnet.Listener
	server  *http.Server
	client  *rentalapi.Client
	set     *collector.Set
	pages   http.Handler
	log     lines
	ctx     context.Context
	stop    context.CancelFunc
	keeping sync.WaitGroup
	ending  sync.Once

	families map[string]string // collector by metric family
	coding   string            // that the scraper asks for

	// configuration in force
	cmu      sync.Mutex
	config   setting
	reloaded time.Time
	allowed  rentalapi.Limits // the most that any configuration allowed

	// provider
	wmu       sync.Mutex
	tokens    map[string]*credential // by account
	customers []*simulator.Account
	past      map[string][]version // by collector and account
	restocks  map[string]float64   // of each plan, as the provider knows them
	minted    int

	amu      sync.Mutex
	arrived  map[string][]time.Time // by token; empty for public
	ambushes []*ambush

	// what was seen
	counted map[string]values // transaction counters by account and customer
}

// setting is what the operator has configured.
type setting struct {
	api        string
	collectors map[string]refresh.Settings
	accounts   []string
	limits     rentalapi.Limits
}

// credential is what an account's token file holds.
type credential struct {
	token    string
	customer int
	fault    error // the file cannot be read
}

// version is what a resource should show while it was so.
type version struct {
	from, to time.Time // to is zero while it is so
	customer int
	values   values
}

// ambush happens while the provider takes in a request.
type ambush struct {
	path  string
	after int // requests for the path that come before
	do    func()
}

// labels are the accounts that may be configured.
func labels() []string { return []string{"main", "lab", "spare"} }

func newStage(t *testing.T, rng *rand.Rand) *stage {
	s := &stage{
		t: t, net: memnet.Listen(), families: map[string]string{}, tokens: map[string]*credential{}, past: map[string][]version{},
		restocks: map[string]float64{}, arrived: map[string][]time.Time{}, counted: map[string]values{},
	}
	for _, r := range collector.Resources() {
		for _, d := range r.Metrics {
			s.families[d.Name] = r.Name
		}
	}
	o := simulator.Options{KeepRequests: -1}
	if rng.IntN(2) == 0 { // a provider that refuses nothing, so that a broken promise shows
		o.PublicLimit, o.AccountLimit = -1, -1
	}
	s.sim = simulator.New(o)
	s.coding = []string{"identity", "gzip", "zstd"}[rng.IntN(3)]
	s.populate(rng)
	s.server = &http.Server{Handler: s, ErrorLog: nil}
	go func() { _ = s.server.Serve(s.net) }()

	s.ctx, s.stop = context.WithCancel(t.Context())
	s.config = calm(rng)
	s.client = rentalapi.New("campaign", s.settings())
	s.set = collector.New(log.NewLogfmtLogger(&s.log), s.client)
	s.pages = s.handler()
	s.apply()
	return s
}

// populate gives the provider three customers: one with a short history, one
// whose transactions fill pages, one whose top-ups do.
func (s *stage) populate(rng *rand.Rand) {
	s.change(func(w *simulator.World) {
		for i := range labels() {
			a := simulator.ExampleAccount(fmt.Sprint("customer", i), time.Now())
			switch i {
			case 1:
				a.Transactions = simulator.Transactions(150+rng.IntN(450), time.Now())
			case 2:
				a.Topups = append(a.Topups, simulator.Topups(100+rng.IntN(150), time.Now())...)
			}
			s.customers = append(s.customers, a)
		}
		for i, label := range labels() {
			s.tokens[label] = &credential{customer: i}
			s.mint(w, label)
		}
	})
}

// mint gives an account a new token of its customer.
func (s *stage) mint(w *simulator.World, label string) {
	s.minted++
	c := s.tokens[label]
	c.token = fmt.Sprintf("secret-%s-%d", label, s.minted)
	w.Accounts[c.token] = s.customers[c.customer]
}

// change changes the world or the tokens and keeps what each resource should show since.
func (s *stage) change(f func(w *simulator.World)) {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	s.sim.Change(func(w *simulator.World) {
		before := stockOf(w)
		f(w)
		now := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
		w.GeneratedAt, w.Status["updated_at"] = now, now
		for id, in := range stockOf(w) {
			if was, known := before[id]; known && in && !was {
				s.restocks[id]++
			}
		}
		s.record("", -1, publicBook(w))
		for label, c := range s.tokens {
			a := s.customers[c.customer]
			b := accountBook(label, a)
			b["addresses"] = values{}
			for _, v := range a.Servers {
				if text(v, "status") == "active" {
					b["addresses"][text(v, "id")+" "+text(v, "ipv4")] = 1
				}
			}
			s.record(label, c.customer, b)
		}
	})
}

func stockOf(w *simulator.World) map[string]bool {
	stock := map[string]bool{}
	for _, p := range w.Plans {
		if in, known := at(p, "availability", "in_stock").(bool); known {
			stock[text(p, "id")] = in
		}
	}
	return stock
}

func (s *stage) record(account string, customer int, b book) {
	now := time.Now()
	for name, v := range b {
		key := name + " " + account
		list := s.past[key]
		if n := len(list); n > 0 {
			if last := &list[n-1]; last.customer == customer && equal(last.values, v) {
				continue
			}
			list[n-1].to = now
		}
		s.past[key] = append(list, version{from: now, customer: customer, values: v})
	}
}

// since returns the versions that held at any time from then on.
func (s *stage) since(name, account string, then time.Time) []version {
	s.wmu.Lock()
	defer s.wmu.Unlock()
	list := s.past[name+" "+account]
	first := len(list)
	for first > 0 && (list[first-1].to.IsZero() || !list[first-1].to.Before(then)) {
		first--
	}
	return slices.Clone(list[first:])
}

// ServeHTTP is the provider.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.amu.Lock()
	s.arrived[token] = append(s.arrived[token], time.Now())
	var now []func()
	s.ambushes = slices.DeleteFunc(s.ambushes, func(a *ambush) bool {
		if a.path != strings.TrimPrefix(r.URL.Path, "/api/v1") {
			return false
		}
		a.after--
		if a.after < 0 {
			now = append(now, a.do)
		}
		return a.after < 0
	})
	s.amu.Unlock()
	for _, do := range now {
		do()
	}
	s.sim.ServeHTTP(w, r)
}

// handler is what the program serves, wired as there.
func (s *stage) handler() http.Handler {
	own, data := prometheus.NewRegistry(), prometheus.NewRegistry()
	own.MustRegister(s.client)
	data.MustRegister(s.set, s.set.State())
	h := &exposition.Handler{
		Blocks: s.set.Blocks, Own: own,
		Whole:  promhttp.HandlerFor(prometheus.Gatherers{own, data}, exposition.HandlerOptions()),
		Failed: func(cause string, err error) { s.t.Errorf("/metrics: %s: %v", cause, err) },
	}
	s.keeping.Go(func() { h.Keep(s.ctx, s.set.Renewed(), s.set.Due) })
	return web.Handler(s.set, web.Options{
		Version: "campaign", API: func() string { return "a simulated provider" }, MetricsPath: "/metrics", Metrics: h, Discovery: true,
	})
}

func (s *stage) settings() rentalapi.Settings {
	transport, err := rentalapi.NewTransport(promconfig.HTTPClientConfig{}, promconfig.WithDialContextFunc(s.net.Dial))
	if err != nil {
		s.t.Fatal(err)
	}
	s.allowed.Public = max(s.allowed.Public, s.config.limits.Public)
	s.allowed.Account = max(s.allowed.Account, s.config.limits.Account)
	return rentalapi.Settings{
		BaseURL:   &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/api/v1"},
		Transport: transport, Timeout: timeout, Limits: s.config.limits,
	}
}

const timeout = 10 * time.Second

// reload changes the configuration and puts it in force.
func (s *stage) reload(f func(c *setting)) {
	s.cmu.Lock()
	defer s.cmu.Unlock()
	f(&s.config)
	s.reloaded = time.Now()
	s.client.Configure(s.settings())
	s.apply()
}

func (s *stage) apply() {
	c := collector.Config{API: s.config.api, Collectors: map[string]refresh.Settings{}}
	for name, settings := range s.config.collectors {
		c.Collectors[name] = settings
	}
	for _, label := range s.config.accounts {
		c.Accounts = append(c.Accounts, collector.Account{Name: label, Identity: "file " + label, Token: func() (string, error) {
			s.wmu.Lock()
			defer s.wmu.Unlock()
			return s.tokens[label].token, s.tokens[label].fault
		}})
	}
	s.set.Apply(s.ctx, c)
}

// calm is a sound configuration of everything.
func calm(rng *rand.Rand) setting {
	c := setting{api: "one", collectors: map[string]refresh.Settings{}, accounts: labels()}
	for _, r := range collector.Resources() {
		c.collectors[r.Name] = pace(rng, r)
	}
	c.limits = limits(rng)
	return c
}

func limits(rng *rand.Rand) rentalapi.Limits {
	l := rentalapi.Limits{Public: 10 + rng.IntN(50), Account: 60 + rng.IntN(61)}
	l.AccountBulk = l.Account / 2
	return l
}

func pace(rng *rand.Rand, r collector.Resource) refresh.Settings {
	interval := max(r.MinInterval, 30*time.Second) + time.Duration(rng.IntN(120))*time.Second
	return refresh.Settings{Interval: interval, MaxAge: 2*interval + time.Duration(rng.Int64N(int64(6*time.Minute)))}
}

// end stops the exporter and the provider. What is left over then, the bubble reports.
func (s *stage) end() {
	s.ending.Do(func() {
		s.stop()
		s.set.Wait()
		s.keeping.Wait()
		_ = s.server.Close()
	})
}

// errUnreadable is that of a token file.
var errUnreadable = errors.New("token file: permission denied")

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
