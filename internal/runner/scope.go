package runner

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-kit/log/level"
	"golang.org/x/sync/errgroup"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// scope is the collectors that use the same token, or none. What readers of a scope use
// does not change: a new configuration makes a copy.
type scope struct {
	account  string
	identity string // of the API and of the token
	api      *rentalapi.Scope
	sources  []*source // in the order of the resources
	origin   time.Time // of the grid on which an account's collectors fetch
}

// tokenPollInterval is the time from one comparison of the accounts' tokens with the last
// ones to the next.
const tokenPollInterval = 5 * time.Second

// maxTokenReads is how many tokens are read at a time, so that files which hang delay the
// others little.
const maxTokenReads = 32

// maxOrigin is the maximum random offset of an account's fetches, also if intervals are
// longer.
const maxOrigin = time.Hour

// reconcile changes the scopes to what the configuration says and returns the new
// sources, scope by scope.
func (r *Runner) reconcile(c Config) []*source {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[string]*scope{}
	var added []*source
	for _, a := range append([]Account{{}}, c.Accounts...) {
		sc := &scope{account: a.Name, identity: c.API + " " + a.Identity}
		if before := r.scopes[a.Name]; before != nil && before.identity == sc.identity {
			*sc = *before
			delete(r.scopes, a.Name)
		}
		added = append(added, r.adjust(sc, c.Collectors)...)
		if sc.api == nil || len(sc.sources) == 0 { // a scope without collectors keeps no state of its token
			sc.api, sc.origin = r.Client.Scope(a.Name, a.Token), r.origin()
		}
		next[a.Name] = sc
	}
	for _, sc := range r.scopes {
		for _, src := range sc.sources {
			src.stop()
		}
	}
	r.scopes = next
	return added
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

// pollTokens lets failing collectors retry as soon as their token has changed, or can be
// read again.
func (r *Runner) pollTokens(ctx context.Context) {
	var last map[*rentalapi.Scope]rentalapi.Fingerprint
	for {
		scopes, tokens := r.sortedScopes(), map[*rentalapi.Scope]rentalapi.Fingerprint{}
		now, errs := make([]rentalapi.Fingerprint, len(scopes)), make([]error, len(scopes))
		var reads errgroup.Group
		reads.SetLimit(maxTokenReads)
		for i, sc := range scopes {
			reads.Go(func() error {
				now[i], errs[i] = sc.api.Fingerprint()
				return nil
			})
		}
		_ = reads.Wait()
		for i, sc := range scopes {
			tokens[sc.api] = now[i]
			if before, known := last[sc.api]; errs[i] != nil || !known || now[i] == before {
				continue
			}
			level.Info(r.options.Logger).Log("msg", "token changed", "account", sc.account)
			for _, src := range sc.sources {
				src.RetryNow()
			}
		}
		last = tokens
		select {
		case <-ctx.Done():
			return
		case <-r.poll: // new scopes
		case <-time.After(tokenPollInterval):
		}
	}
}

// sortedScopes returns the scopes: the public one first, then by account.
func (r *Runner) sortedScopes() []*scope {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.scopes), func(a, b *scope) int { return strings.Compare(a.account, b.account) })
}

// sources returns the sources of all scopes, in their order.
func (r *Runner) sources() []*source {
	var all []*source
	for _, sc := range r.sortedScopes() {
		all = append(all, sc.sources...)
	}
	return all
}

// known returns what is known of the scope.
func (sc *scope) known() collector.Scope {
	known := collector.Scope{Account: sc.account}
	for _, src := range sc.sources {
		if snap, until, ok := src.Value(); ok {
			known.Add(snap.Facts, until)
		}
		if src.incomplete.Load() {
			known.Incomplete = append(known.Incomplete, src.resource.Name)
		}
	}
	return known
}

// Accounts returns what is known of each account, in the order of their names.
func (r *Runner) Accounts() []collector.Scope {
	var all []collector.Scope
	for _, sc := range r.sortedScopes() {
		if sc.account != "" {
			all = append(all, sc.known())
		}
	}
	return all
}
