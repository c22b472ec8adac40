package runner

import (
	"math/rand/v2"
	"slices"
	"strings"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
)

// account is the collectors that use the same token; the public ones, which use none, are
// those of the account without a name. It is immutable: a new configuration makes a copy.
type account struct {
	name     string
	identity string // of the API and of the token; empty before the first configuration
	client   *rentalapi.Client
	jobs     []*job // in the order of the resources

	// jitter is the share of an interval by which the second fetches are late, so that
	// accounts which start together do not stay in step. It is the same for all collectors
	// of the account: balance and servers are of one moment.
	jitter float64
}

// maxJitter is the largest jitter of an account.
const maxJitter = 0.1

// reconcile changes the accounts and their jobs to what is configured, and returns the new
// jobs, account by account.
func (r *Runner) reconcile(s Spec) (added []*job) {
	before, removed := map[string]*account{}, map[*job]bool{}
	for _, a := range *r.current.Load() {
		before[a.name] = a
		for _, j := range a.jobs {
			removed[j] = true
		}
	}
	var next []*account
	for _, spec := range append([]AccountSpec{{}}, s.Accounts...) {
		a := &account{name: spec.Name, identity: s.API + " " + spec.Identity}
		same := before[a.name]
		if same == nil || same.identity != a.identity || len(same.jobs) == 0 {
			same = &account{client: r.API.Client(a.name, spec.Token), jitter: maxJitter * rand.Float64()}
		}
		a.client, a.jitter = same.client, same.jitter
		for i := range r.resources {
			res := &r.resources[i]
			timing, enabled := s.Collectors[res.Name]
			if !enabled || res.Account != (a.name != "") {
				continue
			}
			var j *job
			if at := slices.IndexFunc(same.jobs, func(j *job) bool { return j.resource == res }); at >= 0 {
				j = same.jobs[at]
				j.setTiming(timing)
				delete(removed, j)
			} else {
				j = r.newJob(a, res, timing)
				added = append(added, j)
			}
			a.jobs = append(a.jobs, j)
		}
		next = append(next, a)
	}
	for j := range removed {
		j.stop()
	}
	slices.SortFunc(next, func(a, b *account) int { return strings.Compare(a.name, b.name) })
	r.current.Store(&next)
	return added
}

// jobs returns the jobs of all accounts, in their order.
func (r *Runner) jobs() []*job {
	var all []*job
	for _, a := range *r.current.Load() {
		all = append(all, a.jobs...)
	}
	return all
}

// known returns what is known of the account.
func (a *account) known() collector.Known {
	known := collector.Known{Account: a.name}
	for _, j := range a.jobs {
		if data, ok := j.shown(); ok {
			known.Add(data.Data, data.expires)
		}
		if j.health().Incomplete {
			known.Incomplete = append(known.Incomplete, j.resource.Name)
		}
	}
	return known
}

// Accounts returns what is known of each account, in the order of their names.
func (r *Runner) Accounts() []collector.Known {
	var all []collector.Known
	for _, a := range (*r.current.Load())[1:] {
		all = append(all, a.known())
	}
	return all
}
