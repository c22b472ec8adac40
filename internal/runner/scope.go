package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-kit/log/level"
	"golang.org/x/sync/errgroup"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
)

// scope is the collectors that use the same token, or none. What readers of a scope use
// does not change: a new configuration makes a copy.
type scope struct {
	account  string
	identity string // of the API and of the token
	api      *rentalapi.Client
	sources  []*source // in the order of the resources
	origin   time.Time // of the grid on which an account's collectors fetch
}

// tokenPollInterval is the time from one comparison of all tokens with the last ones to the
// next.
const tokenPollInterval = 5 * time.Second

// maxTokenReads is how many tokens are read at a time, so that files which hang delay the
// others little.
const maxTokenReads = 32

// maxOrigin is the maximum random offset of an account's fetches, also if intervals are
// longer.
const maxOrigin = time.Hour

// reconcile changes the scopes to what the configuration says and returns the new
// sources, scope by scope.
func (r *Runner) reconcile(c Config) (added []*source) {
	type key struct {
		account, identity string
		resource          *collector.Resource
	}
	scopes, removed := map[string]*scope{}, map[key]*source{}
	for _, sc := range r.scopes() {
		scopes[sc.account] = sc
		for _, src := range sc.sources {
			removed[key{sc.account, sc.identity, src.resource}] = src
		}
	}
	var next []*scope
	for _, a := range append([]Account{{}}, c.Accounts...) {
		sc := &scope{account: a.Name, identity: c.API + " " + a.Identity}
		for i := range r.resources {
			res := &r.resources[i]
			settings, enabled := c.Collectors[res.Name]
			if !enabled || res.Account != (a.Name != "") {
				continue
			}
			k := key{sc.account, sc.identity, res}
			src := removed[k]
			delete(removed, k)
			if src == nil {
				src = r.newSource(sc, res, settings)
				added = append(added, src)
			}
			sc.sources = append(sc.sources, src)
		}
		before := scopes[a.Name]
		if before == nil || before.identity != sc.identity || len(sc.sources) == 0 { // a scope without collectors keeps no state of its token
			before = &scope{api: r.API.Client(a.Name, a.Token), origin: r.origin()}
		}
		sc.api, sc.origin = before.api, before.origin
		next = append(next, sc)
	}
	for _, src := range removed {
		src.stop()
	}
	slices.SortFunc(next, func(a, b *scope) int { return strings.Compare(a.account, b.account) })
	r.allScopes.Store(&next)
	return added
}

// pollTokens lets failing collectors retry as soon as their token has changed, or can be
// read again.
func (r *Runner) pollTokens(ctx context.Context) {
	for {
		var reads errgroup.Group
		reads.SetLimit(maxTokenReads)
		for _, sc := range r.scopes() {
			reads.Go(func() error {
				if sc.api.TokenChanged() {
					level.Info(r.options.Logger).Log("msg", "token changed", "account", sc.account)
					for _, src := range sc.sources {
						src.RetryNow()
					}
				}
				return nil
			})
		}
		_ = reads.Wait()
		select {
		case <-ctx.Done():
			return
		case <-time.After(tokenPollInterval):
		}
	}
}

// scopes returns the scopes: the public one first, then by account. Before the first
// configuration there is a public one without identity.
func (r *Runner) scopes() []*scope { return *r.allScopes.Load() }

// sources returns the sources of all scopes, in their order.
func (r *Runner) sources() []*source {
	var all []*source
	for _, sc := range r.scopes() {
		all = append(all, sc.sources...)
	}
	return all
}

// known returns what is known of the scope.
func (sc *scope) known() collector.Known {
	known := collector.Known{Account: sc.account}
	for _, src := range sc.sources {
		if snap, until, ok := src.Value(); ok {
			known.Add(snap.Data, until)
		}
		if src.incomplete.Load() {
			known.Incomplete = append(known.Incomplete, src.resource.Name)
		}
	}
	return known
}

// Accounts returns what is known of each account, in the order of their names.
func (r *Runner) Accounts() []collector.Known {
	var all []collector.Known
	for _, sc := range r.scopes()[1:] {
		all = append(all, sc.known())
	}
	return all
}
