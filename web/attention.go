package web

import (
	"slices"
	"strings"
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

func (n *notices) add(class, subject, text string) { *n = append(*n, notice{class, subject, text}) }
func (n *notices) bad(subject, text string)        { n.add("bad", subject, text) }
func (n *notices) warn(subject, text string)       { n.add("warn", subject, text) }

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

// rejected reports whether the API rejected an account's token.
func (v *view) rejected(account string) bool {
	rejected := v.value("exporter_api_token_rejected", account)
	return rejected != nil && *rejected == 1
}

func (v *view) rejectedTokens(n *notices) {
	for _, account := range v.accounts {
		if v.rejected(account) {
			n.bad(named(account), "The API token was rejected, or cannot be read.")
		}
	}
}

func (v *view) failingCollectors(n *notices) {
	for _, h := range v.health {
		if h.Err == nil {
			continue
		}
		if h.Unauthorized() && v.rejected(h.Account) {
			continue // said once for the account
		}
		since := "failing since the start"
		if !h.LastSuccess.IsZero() {
			since = "no success since " + moment(h.LastSuccess, v.now)
		}
		_, class := describeState(h, v.now)
		n.add(class, "Collector "+collectorName(h), since+": "+clip(h.Err.Error(), maxError))
	}
}

func (v *view) components(n *notices) {
	for _, s := range v.samples["component_operational"] {
		if s.Value() == 1 {
			continue
		}
		location, name := s.Label("location"), s.Label("component")
		n.bad(v.locationName(location), "Component "+text(name)+": "+text(v.label("state", "component_state", location, name))+".")
	}
	if ongoing := v.value("incidents_ongoing"); ongoing != nil && *ongoing > 0 {
		n.warn("Provider", count(int(*ongoing), "incident")+" ongoing.")
	}
}

func (v *view) suspendedServers(n *notices) {
	suspended := map[string][]string{} // by account
	for _, s := range v.samples["server_status"] {
		if strings.EqualFold(s.Label("status"), "suspended") {
			account := s.Label("account")
			suspended[account] = append(suspended[account], v.serverName(account, s.Label("server")))
		}
	}
	for _, account := range v.accounts {
		if names := suspended[account]; len(names) > 0 {
			slices.Sort(names)
			n.bad(named(account), count(len(names), "server")+" suspended: "+join(names, 5)+".")
		}
	}
}

func (v *view) unfundedAccounts(n *notices) {
	for _, account := range v.accounts {
		if balance := v.value("account_balance_usd", account); balance != nil && *balance < 0 {
			n.bad(named(account), "The balance is negative: "+money(balance)+" USD.")
		}
		if until, class := v.fundedUntil(account); class != "" {
			n.add(class, named(account), "The balance cannot pay the renewals of "+date(until, v.now)+".")
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
			n.warn("Collector "+collectorName(h), count(h.Invalid.Items, "invalid item")+" in the last response: "+join(causes, 1)+".")
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
func collectorName(h health) string {
	if h.Account == "" {
		return h.Collector
	}
	return h.Collector + " of account " + text(h.Account)
}

func named(account string) string { return "Account " + text(account) }
