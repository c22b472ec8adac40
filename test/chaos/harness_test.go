package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/exposition"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/runner"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/web"
)

// harness is the exporter without sockets and a simulated provider in one synctest bubble. It
// records every past state of the provider.
type harness struct {
	*simtest.API
	*runner.Runner
	client  *rentalapi.API
	t       *testing.T
	rng     *rand.Rand // all random choices
	handler http.Handler
	log     simtest.Log
	ctx     context.Context
	cancel  context.CancelFunc

	limits   rentalapi.Limits
	config   runner.Spec
	reloaded time.Time

	worldMu sync.Mutex
	tokens  map[string]string    // tokens by account
	history map[string][]version // versions of the data by collector and account
	issued  int                  // tokens
}

// samples are values by series.
type samples = map[string]float64

// version is a state of a resource, until the next one.
type version struct {
	samples samples
	from    time.Time
}

// accountNames are the accounts that may be configured.
func accountNames() []string { return []string{"main", "lab", "spare"} }

const requestTimeout = 10 * time.Second

func newHarness(t *testing.T, rng *rand.Rand, limits rentalapi.Limits) *harness {
	h := &harness{
		// It rejects nothing, so that broken limits show.
		API: simtest.StartInMemory(t, simulator.Options{Unlimited: true}), t: t, rng: rng, limits: limits,
		tokens: map[string]string{}, history: map[string][]version{},
	}
	h.config = h.validConfiguration(rng)
	h.changeWorld(func(w *simulator.World) {
		clear(w.Accounts)
		w.SendsAge = rng.IntN(2) == 0
		for i, name := range accountNames() {
			a := simulator.ExampleAccount(name, time.Now())
			switch i { // two have several pages
			case 1:
				a.Transactions = simulator.Transactions(110+rng.IntN(200), time.Now())
			case 2:
				a.Topups = append(a.Topups, simulator.Topups(100+rng.IntN(150), time.Now())...)
			}
			w.Accounts[ownToken(name)] = a
			h.issueToken(w, name)
		}
	})
	h.start()
	return h
}

// start runs a new exporter until stop.
func (h *harness) start() {
	h.ctx, h.cancel = context.WithCancel(h.t.Context())
	registry := prometheus.NewRegistry()
	transport := rentalapi.Transport{Config: promconfig.DefaultHTTPClientConfig, Dial: h.Dial}
	h.client = rentalapi.New("chaos", rentalapi.Settings{BaseURL: h.URL, Transport: transport, Timeout: requestTimeout, Limits: h.limits}, registry)
	h.Runner = runner.New(&h.log, h.client)
	h.handler = web.Handler(h.Runner, web.Options{
		Version: "chaos", MetricsPath: "/metrics", Published: h.Publisher.Samples,
		Metrics: &exposition.Handler{
			Publisher: h.Publisher, Gatherer: registry, OnError: func(err error) { h.t.Error(err) },
		},
		Configured: func() web.Configured { return web.Configured{API: "a simulated provider"} },
	})
	h.Run(h.ctx)
	h.ApplyConfig(h.ctx, h.config)
}

// stop ends the exporter as a kill does: it completes nothing.
func (h *harness) stop() {
	h.cancel()
	h.Wait()
}

// ownToken is a token of an account that the exporter does not have, for expectations.
func ownToken(account string) string { return "secret-own-" + account }

// issueToken gives an account a new token.
func (h *harness) issueToken(w *simulator.World, account string) {
	h.issued++
	h.tokens[account] = fmt.Sprintf("secret-%s-%d", account, h.issued)
	w.Accounts[h.tokens[account]] = w.Accounts[ownToken(account)]
}

// changeWorld changes the provider's data or the tokens, and records what each resource
// results in from now on.
func (h *harness) changeWorld(change func(w *simulator.World)) {
	h.worldMu.Lock()
	defer h.worldMu.Unlock()
	h.Change(func(w *simulator.World) {
		change(w)
		now := time.Now().UTC().Truncate(time.Second).Format(time.RFC3339)
		w.GeneratedAt, w.Status["updated_at"] = now, now
	})
	for _, r := range collector.Resources() {
		accounts := []string{""}
		if r.Account {
			accounts = accountNames()
		}
		for _, account := range accounts {
			key := r.Name + " " + account
			present := presentState(h.t, r, getter{h.API, ownToken(account)}, account)
			versions := h.history[key]
			if n := len(versions); n == 0 || !maps.Equal(versions[n-1].samples, present) {
				h.history[key] = append(versions, version{present, time.Now()})
			}
		}
	}
}

// versionsSince returns the versions of a resource that held at any time from then on.
func (h *harness) versionsSince(key string, then time.Time) []version {
	h.worldMu.Lock()
	defer h.worldMu.Unlock()
	versions := h.history[key]
	for len(versions) > 1 && versions[1].from.Before(then) {
		versions = versions[1:]
	}
	return versions
}

// reload changes the configuration and applies it.
func (h *harness) reload(change func(c *runner.Spec)) {
	change(&h.config)
	h.reloaded = time.Now()
	h.ApplyConfig(h.ctx, h.config)
}

// validConfiguration enables all collectors and accounts.
func (h *harness) validConfiguration(rng *rand.Rand) runner.Spec {
	c := runner.Spec{API: "one", Collectors: map[string]collector.Timing{}}
	for _, r := range collector.Resources() {
		c.Collectors[r.Name] = randomSettings(rng, r)
	}
	for _, name := range accountNames() {
		c.Accounts = append(c.Accounts, runner.AccountSpec{Name: name, Identity: "file " + name, Token: func() (string, error) {
			h.worldMu.Lock()
			defer h.worldMu.Unlock()
			return h.tokens[name], nil
		}})
	}
	return c
}

func randomSettings(rng *rand.Rand, r collector.Resource) collector.Timing {
	interval := max(r.MinInterval, 30*time.Second) + time.Duration(rng.IntN(120))*time.Second
	return collector.Timing{Interval: interval, MaxAge: 2*interval + time.Duration(rng.Int64N(int64(6*time.Minute)))}
}

// resourceOf returns the collector that a metric family belongs to; none for those
// that do not follow from one state of a resource.
var resourceOf = func() map[string]string {
	owners := map[string]string{}
	for _, r := range collector.Resources() {
		for _, d := range r.Metrics {
			owners[d.Name] = r.Name
		}
	}
	ofChanges := regexp.MustCompile("_total$|_last_(restock|sellout|added|removed|price_change|failed)_|_keys_changed_|plan_(added|removed)_|_previous_price_")
	maps.DeleteFunc(owners, func(name, _ string) bool { return ofChanges.MatchString(name) })
	return owners
}()

// getter reads responses of a provider without faults, limits and a cache.
type getter struct {
	api   *simtest.API
	token string
}

// Get implements rentalapi.Getter.
func (g getter) Get(_ context.Context, path string, query url.Values, read func(*json.Decoder) error) (rentalapi.Response, error) {
	return rentalapi.Response{Received: time.Now()}, read(json.NewDecoder(strings.NewReader(g.api.Body(path+"?"+query.Encode(), g.token))))
}

// presentState returns the samples of the provider's present data of a resource, mapped
// in one undisturbed step. That each value is mapped right is what the golden files of
// collector show.
func presentState(t *testing.T, r collector.Resource, api getter, account string) samples {
	t.Helper()
	snapshot, err := r.Fetch(t.Context(), api, account)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Name, account, err)
	}
	present := samples{}
	for _, s := range snapshot.Metrics {
		var labels []string
		for i, label := range s.Definition.Labels {
			labels = append(labels, label, s.Labels[i])
		}
		present[simtest.Series(s.Definition.Name, labels...)] = s.Value
	}
	return present
}

// byResource groups the data of a page by collector and account.
func byResource(page simtest.Exposition) map[string]samples {
	groups := map[string]samples{}
	for series, v := range page.Values {
		name, _, _ := strings.Cut(series, "{")
		if resourceOf[name] == "" {
			continue
		}
		key := resourceOf[name] + " " + simtest.Label(series, "account")
		if groups[key] == nil {
			groups[key] = samples{}
		}
		groups[key][series] = v
	}
	return groups
}

// assertRateLimits asserts that in any 60 seconds at most so many requests came without a
// token, and with each token.
func (h *harness) assertRateLimits(most rentalapi.Limits) {
	h.t.Helper()
	times := map[string][]time.Time{}
	for _, r := range h.Requests() {
		times[r.Token] = append(times[r.Token], r.Time)
	}
	for token, list := range times {
		limit := most.Account
		if token == "" {
			limit = most.Public
		}
		if got := peak(list); got > limit {
			h.t.Errorf("%q: %d of %d requests within 60 s, more than %d", token, got, len(list), limit)
		}
	}
}

// peak returns the largest number of times within any 60 seconds, both ends
// included: the quantity that the provider limits. The times may be in any order.
func peak(times []time.Time) int {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most, first := 0, 0
	for last := range times {
		for times[last].Sub(times[first]) > time.Minute {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
