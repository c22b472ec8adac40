package runner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
)

// account is the collectors that use the same token; the public ones, which use none, are
// those of the account without a name.
type account struct {
	name     string
	identity string // of the API and of the token; empty before the first configuration
	client   *rentalapi.Client
	jobs     []*job // in the order of the resources
}

// maxJitter is the largest share of an interval by which the second fetches of an account are
// late, so that accounts which start together do not stay in step.
const maxJitter = 0.1

// accountStagger is the time between the starts of two accounts' collectors.
const accountStagger = 20 * time.Millisecond

// reconcile changes the accounts and their jobs to what is configured, and returns the new
// jobs. The caller holds mu; likewise below.
func (r *Runner) reconcile(s Spec) (added []*job) {
	before, delay := map[string]*account{}, time.Duration(0)
	for _, a := range r.accounts {
		before[a.identity] = a
	}
	r.accounts = nil
	for _, spec := range append([]AccountSpec{{}}, s.Accounts...) {
		identity := fmt.Sprintf("%s %q %s", s.API, spec.Name, spec.Identity)
		a := before[identity]
		if a == nil {
			a = &account{name: spec.Name, identity: identity, client: r.options.API.Client(spec.Name, spec.Token)}
		}
		delete(before, identity)
		r.accounts = append(r.accounts, a)
		if started := r.enable(a, s.Collectors, delay); len(started) > 0 {
			added, delay = append(added, started...), delay+accountStagger
		}
	}
	for _, a := range before {
		r.enable(a, nil, 0)
	}
	slices.SortFunc(r.accounts, func(a, b *account) int { return strings.Compare(a.name, b.name) })
	return added
}

// enable changes the jobs of an account to the collectors that are enabled. It returns the new
// ones, which fetch after delay, and stops those that are not enabled any more.
func (r *Runner) enable(a *account, collectors map[string]Timing, delay time.Duration) (added []*job) {
	before, late := a.jobs, maxJitter*rand.Float64() // the same for all: balance and servers are of one moment
	a.jobs = nil
	for i, res := range r.resources {
		timing, enabled := collectors[res.Name]
		at := slices.IndexFunc(before, func(j *job) bool { return j.resource.Name == res.Name })
		switch {
		case res.Account != (a.name != ""):
		case enabled && at >= 0:
			before[at].setTiming(timing)
			a.jobs = append(a.jobs, before[at])
		case enabled:
			j := r.newJob(a, &res, r.groups[i], timing, delay)
			j.schedule.late = time.Duration(late * float64(timing.Interval))
			a.jobs, added = append(a.jobs, j), append(added, j)
		case at >= 0:
			before[at].stop()
		}
	}
	return added
}

// jobs returns the jobs of all accounts, in their order.
func (r *Runner) jobs() []*job {
	var all []*job
	for _, a := range r.accounts {
		all = append(all, a.jobs...)
	}
	return all
}

// known returns what is known of the account.
func (a *account) known() collector.Known {
	known := collector.Known{Account: a.name}
	for _, j := range a.jobs {
		if j.shown() {
			known.Add(j.snapshot.Data, j.health.expires())
		}
		if j.health.Incomplete {
			known.Incomplete = append(known.Incomplete, j.resource.Name)
		}
	}
	return known
}

// Accounts returns what is known of each account, in the order of their names.
func (r *Runner) Accounts() []collector.Known {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []collector.Known
	for _, a := range r.accounts[1:] {
		all = append(all, a.known())
	}
	return all
}
