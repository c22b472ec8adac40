package runner

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-kit/log/level"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// scope is the collectors that use the same token, or none. What readers of a scope use
// does not change: a new configuration makes a copy.
type scope struct {
	account  string
	identity string
	api      *rentalapi.Scope
	sources  []*source // in the order of the resources
	stopPoll context.CancelFunc
	origin   time.Time // of the grid on which an account's collectors fetch
}

// maxOrigin is the maximum random offset of an account's fetches, also if intervals are
// longer.
const maxOrigin = time.Hour

// randomOrigin returns the origin of a new scope, so that accounts do not stay in step.
func randomOrigin(r *rand.Rand) time.Time {
	if r != nil {
		return time.Now().Add(-time.Duration(r.Int64N(int64(maxOrigin))))
	}
	return time.Now().Add(-rand.N(maxOrigin))
}

// reconcile changes the scopes to what the configuration says and returns the new
// sources, scope by scope.
func (r *Runner) reconcile(c Config) []*source {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.scopes
	if r.api != c.API {
		old = nil
	}
	next := map[string]*scope{}
	kept := map[string]bool{}
	var added []*source
	for _, a := range append([]Account{{}}, c.Accounts...) {
		sc := &scope{account: a.Name, identity: a.Identity, stopPoll: func() {}}
		// A scope without collectors keeps no state of its token.
		if before := old[a.Name]; before != nil && before.identity == a.Identity && r.anyEnabled(a.Name, c.Collectors) {
			*sc = *before
			kept[a.Name] = true
		} else {
			sc.api, sc.origin = r.Client.Scope(a.Name, a.Token), r.origin()
		}
		added = append(added, r.adjust(sc, c.Collectors)...)
		next[a.Name] = sc
	}
	for name, sc := range r.scopes {
		if !kept[name] {
			sc.close()
			r.identities.replace(name, "")
		}
	}
	r.api, r.scopes = c.API, next
	return added
}

// anyEnabled returns whether an account, or the public scope, has an enabled collector.
func (r *Runner) anyEnabled(account string, enabled map[string]refresh.Settings) bool {
	return slices.ContainsFunc(r.resources, func(res collector.Resource) bool {
		_, on := enabled[res.Name]
		return on && res.Account == (account != "")
	})
}

// adjust gives a scope the sources that are enabled, and returns the new ones.
func (r *Runner) adjust(sc *scope, enabled map[string]refresh.Settings) []*source {
	var sources, added []*source
	for i := range r.resources {
		res := &r.resources[i]
		at := slices.IndexFunc(sc.sources, func(src *source) bool { return src.resource == res })
		settings, on := enabled[res.Name]
		switch {
		case res.Account != (sc.account != ""):
		case !on && at >= 0:
			sc.sources[at].stop()
		case !on:
		case at >= 0:
			sources = append(sources, sc.sources[at])
		default:
			src := r.newSource(sc, res, settings)
			sources = append(sources, src)
			added = append(added, src)
		}
	}
	sc.sources = sources
	return added
}

// pollToken lets failing collectors retry as soon as their token has changed, or can be
// read again.
func (r *Runner) pollToken(ctx context.Context, sc *scope) {
	last, _ := sc.api.Fingerprint()
	tick := time.NewTicker(r.options.TokenPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := sc.api.Fingerprint()
		changed := now != last
		last = now
		if err != nil || !changed {
			continue
		}
		level.Info(r.options.Logger).Log("msg", "token changed", "account", sc.account)
		for _, src := range sc.sources {
			src.RetryNow()
		}
	}
}

func (sc *scope) close() {
	for _, src := range sc.sources {
		src.stop()
	}
	sc.stopPoll()
}

// sortedScopes returns the scopes: the public one first, then by account.
func (r *Runner) sortedScopes() []*scope {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.scopes), func(a, b *scope) int { return strings.Compare(a.account, b.account) })
}

// inputs returns the facts of the scope that have not expired.
func (sc *scope) inputs() collector.Inputs {
	var in collector.Inputs
	for _, src := range sc.sources {
		if snap, until, ok := src.Value(); ok {
			in.Add(snap.Facts, until)
		}
	}
	return in
}

func (r *Runner) allTried() bool {
	scopes := r.sortedScopes()
	for _, sc := range scopes {
		if slices.ContainsFunc(sc.sources, func(src *source) bool { return !src.tried.Load() }) {
			return false
		}
	}
	return len(scopes) > 0 // none before the first configuration
}

// Accounts returns what is known of each account, in the order of their names.
func (r *Runner) Accounts() []collector.Scope {
	var all []collector.Scope
	for _, sc := range r.sortedScopes() {
		if sc.account == "" {
			continue
		}
		s := collector.Scope{Account: sc.account, Facts: sc.inputs().Facts, Incomplete: map[string]bool{}}
		for _, src := range sc.sources {
			s.Incomplete[src.resource.Name] = src.incomplete.Load()
		}
		all = append(all, s)
	}
	return all
}

// builder returns a builder for metrics of the scope.
func (sc *scope) builder() *metric.Builder {
	if sc.account == "" {
		return &metric.Builder{}
	}
	return &metric.Builder{ConstLabelValues: []string{sc.account}}
}
