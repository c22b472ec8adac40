package web

import (
	"slices"
	"strings"

	"server_rental_exporter/internal/runner"
)

// maxNotices bounds what is listed as needing attention.
const maxNotices = 50

// fundingNotice is how far ahead a renewal that cannot be paid needs attention, and
// fundingUrgent how far ahead it is urgent.
const (
	fundingNotice = 14 * day
	fundingUrgent = 2 * day
)

// notice is something that needs attention.
type notice struct {
	Class         string // bad or warn
	Subject, Text string
}

// notices are collected in the order of the sections that they belong to.
type notices []notice

func (n *notices) bad(subject, text string)  { *n = append(*n, notice{"bad", subject, text}) }
func (n *notices) warn(subject, text string) { *n = append(*n, notice{"warn", subject, text}) }

// attention returns what needs attention, urgent first.
func (v *view) attention() table[notice] {
	var n notices
	v.rejectedTokens(&n)
	v.failingCollectors(&n)
	v.components(&n)
	v.suspendedServers(&n)
	v.unfundedAccounts(&n)
	v.invalidItems(&n)
	v.emptyWatches(&n)
	slices.SortStableFunc(n, func(a, b notice) int { return strings.Compare(a.Class, b.Class) }) // bad before warn
	return cut(n, maxNotices)
}

func (v *view) rejectedTokens(n *notices) {
	for _, account := range v.accounts {
		if rejected := value(v.rejected[account]); rejected != nil && *rejected == 1 {
			n.bad(named(account), "The API token was rejected, or cannot be read.")
		}
	}
}

func (v *view) failingCollectors(n *notices) {
	for _, h := range v.health {
		if h.Err == nil {
			continue
		}
		if rejected := value(v.rejected[h.Account]); rejected != nil && *rejected == 1 && h.Unauthorized() {
			continue // said once for the account
		}
		since := "failing since the start"
		if !h.LastSuccess.IsZero() {
			since = "no success since " + moment(h.LastSuccess, v.now)
		}
		report := n.warn
		if _, class := describeState(h, v.now); class == "bad" {
			report = n.bad
		}
		report("Collector "+collectorName(h), since+": "+clip(h.Err.Error(), maxError))
	}
}

func (v *view) components(n *notices) {
	type component struct{ location, name string }
	states := map[component]string{}
	for _, s := range v.samples["component_state"] {
		states[component{s.Label("location"), s.Label("component")}] = s.Label("state")
	}
	for _, s := range v.samples["component_operational"] {
		if s.Value() == 1 {
			continue
		}
		c := component{s.Label("location"), s.Label("component")}
		n.bad(v.locationName(c.location), "Component "+text(c.name)+": "+text(states[c])+".")
	}
	if ongoing := v.samples.single("incidents_ongoing"); ongoing != nil && *ongoing > 0 {
		n.warn("Provider", count(int(*ongoing), "incident")+" ongoing.")
	}
}

func (v *view) suspendedServers(n *notices) {
	for _, account := range v.accounts {
		var names []string
		for _, s := range v.byAccount[account]["server_status"] {
			if strings.EqualFold(s.Label("status"), "suspended") {
				names = append(names, v.serverName(account, s.Label("server")))
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			n.bad(named(account), count(len(names), "server")+" suspended: "+join(names, 5)+".")
		}
	}
}

func (v *view) unfundedAccounts(n *notices) {
	for _, account := range v.accounts {
		own := v.byAccount[account]
		if balance := first(own["account_balance_usd"]); balance != nil && *balance < 0 {
			n.bad(named(account), "The balance is negative: "+money(balance)+" USD.")
		}
		funded := first(own["account_funded_until_timestamp_seconds"])
		if funded == nil {
			continue
		}
		until := at(*funded)
		problem := "The balance cannot pay the renewals of " + date(until, v.now) + "."
		switch left := until.Sub(midnight(v.now)); {
		case left <= fundingUrgent:
			n.bad(named(account), problem)
		case left <= fundingNotice:
			n.warn(named(account), problem)
		}
	}
}

func (v *view) invalidItems(n *notices) {
	for _, h := range v.health {
		if h.Invalid.Items > 0 {
			causes := make([]string, 0, len(h.Invalid.Causes))
			for _, c := range h.Invalid.Causes {
				causes = append(causes, c.Error())
			}
			n.warn("Collector "+collectorName(h), count(h.Invalid.Items, "item")+" of the last answer not understood in full: "+join(causes, 1)+".")
		}
		if h.DuplicateOf != "" {
			n.warn(named(h.Account), duplicateText(h))
		}
	}
}

func (v *view) emptyWatches(n *notices) {
	for _, s := range v.samples["watch_plans"] {
		if s.Value() == 0 {
			n.warn("Watch "+text(s.Label("watch")), "No plan matches, in stock or not: check its criteria.")
		}
	}
}

// collectorName names a collector, and its account.
func collectorName(h runner.Health) string {
	if h.Account == "" {
		return h.Collector
	}
	return h.Collector + " of account " + text(h.Account)
}

func named(account string) string { return "Account " + text(account) }
