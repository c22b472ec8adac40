package runner

import (
	"context"
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

// scope is the collectors that use the same token, or none.
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

// addedSources are new sources of a scope that are not started yet.
type addedSources struct {
	*scope
	sources []*source
}

// reconcile changes the scopes to what the configuration says and returns what is new.
func (r *Runner) reconcile(c Config) []addedSources {
	wanted := append([]Account{{}}, c.Accounts...)
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.scopes
	if r.api != c.API {
		old = map[string]*scope{}
	}
	next := map[string]*scope{}
	var added []addedSources
	for _, a := range wanted {
		sc := old[a.Name]
		if sc == nil || sc.identity != a.Identity || !r.anyEnabled(a.Name, c.Collectors) { // an idle one keeps no state of its token
			sc = &scope{account: a.Name, identity: a.Identity, api: r.Client.Scope(a.Name, a.Token), stopPoll: func() {}, origin: r.origin()}
		}
		if sources := r.adjust(sc, c.Collectors); len(sources) > 0 {
			added = append(added, addedSources{sc, sources})
		}
		next[a.Name] = sc
	}
	for name, sc := range r.scopes {
		if next[name] != sc {
			sc.close()
			r.identities.forget(name)
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
		r.mu.RLock()
		sources := sc.sources
		r.mu.RUnlock()
		for _, src := range sources {
			src.RetryNow()
		}
	}
}

func (sc *scope) close() {
	for _, src := range sc.sources {
		src.stop()
	}
	sc.stopPoll()
	sc.api.Close()
}

// scopeSnapshot is a scope with the sources that it had when it was taken.
type scopeSnapshot struct {
	*scope
	sources []*source
}

// snapshot returns the scopes: the public one first, then by account.
func (r *Runner) snapshot() []scopeSnapshot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	scopes := make([]scopeSnapshot, 0, len(r.scopes))
	for _, sc := range r.scopes {
		scopes = append(scopes, scopeSnapshot{sc, sc.sources})
	}
	slices.SortFunc(scopes, func(a, b scopeSnapshot) int { return strings.Compare(a.account, b.account) })
	return scopes
}

// public returns the public scope; none before the first configuration.
func (r *Runner) public() scopeSnapshot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	sc := r.scopes[""]
	if sc == nil {
		return scopeSnapshot{}
	}
	return scopeSnapshot{sc, sc.sources}
}

// inputs returns the facts of the scope that have not expired.
func (sc scopeSnapshot) inputs() collector.Inputs {
	var in collector.Inputs
	for _, src := range sc.sources {
		if snap, until, ok := src.Value(); ok {
			in.Add(snap.Facts, until)
		}
	}
	return in
}

func (r *Runner) allTried() bool {
	scopes := r.snapshot()
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
	for _, sc := range r.snapshot() {
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
