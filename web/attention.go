package web

import (
	"slices"
	"strings"
)

// maxNotices is the maximum number of notices.
const maxNotices = 50

// A renewal that the balance cannot pay needs attention if it comes within
// fundingNotice. It is urgent within fundingUrgent.
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
	v.providerNotices(&n)
	v.accountNotices(&n)
	v.collectorNotices(&n)
	for _, s := range v.samples["watch_plans"] {
		if s.Value() == 0 {
			n.warn("Watch "+text(s.Label("watch")), "No plan matches, in stock or not: check its criteria.")
		}
	}
	slices.SortStableFunc(n, func(a, b notice) int { return strings.Compare(a.Class, b.Class) }) // bad before warn
	return cut(n, maxNotices)
}

func (v *view) providerNotices(n *notices) {
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

// rejected reports whether the API rejected an account's token.
func (v *view) rejected(account string) bool {
	rejected := v.value("exporter_api_token_rejected", account)
	return rejected != nil && *rejected == 1
}

func (v *view) accountNotices(n *notices) {
	suspended := map[string][]string{} // servers by account
	for _, s := range v.samples["server_status"] {
		if strings.EqualFold(s.Label("status"), "suspended") {
			account := s.Label("account")
			suspended[account] = append(suspended[account], v.serverName(account, s.Label("server")))
		}
	}
	for _, account := range v.accounts {
		subject := "Account " + text(account)
		if v.rejected(account) {
			n.bad(subject, "The API token was rejected, or cannot be read.")
		}
		if names := suspended[account]; len(names) > 0 {
			slices.Sort(names)
			n.bad(subject, count(len(names), "server")+" suspended: "+join(names, 5)+".")
		}
		if balance := v.value("account_balance_usd", account); balance != nil && *balance < 0 {
			n.bad(subject, "The balance is negative: "+money(balance)+" USD.")
		}
		if until, class := v.fundedUntil(account); class != "" {
			n.add(class, subject, "The balance cannot pay the renewals of "+date(until, v.now)+".")
		}
	}
}

func (v *view) collectorNotices(n *notices) {
	for _, h := range v.health {
		subject := "Collector " + h.Collector
		if h.Account != "" {
			subject += " of account " + text(h.Account)
		}
		saidForAccount := h.Unauthorized() && v.rejected(h.Account)
		if h.Err != nil && !saidForAccount {
			since := "failing since the start"
			if !h.LastSuccess.IsZero() {
				since = "no success since " + moment(h.LastSuccess, v.now)
			}
			_, class := describeState(h, v.now)
			n.add(class, subject, since+": "+clip(h.Err.Error(), maxError))
		}
		if h.Invalid.Items > 0 {
			causes := make([]string, 0, len(h.Invalid.Causes))
			for _, c := range h.Invalid.Causes {
				causes = append(causes, c.Error())
			}
			n.warn(subject, count(h.Invalid.Items, "invalid item")+" in the last response: "+join(causes, 1)+".")
		}
		if h.DuplicateOf != "" {
			n.warn("Account "+text(h.Account), duplicateText(h))
		}
	}
}
