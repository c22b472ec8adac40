package web

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

type notice struct {
	Class         string // bad, warn or info: the severity
	Alert         string // that fires if this lasts, without its prefix; empty if there is none
	Subject, Text string
}

// notices are collected in the order of the sections that they belong to.
type notices []notice

func (n *notices) add(class, alert, subject, text string) {
	*n = append(*n, notice{class, alert, subject, text})
}

// Attention returns what needs attention, urgent first. Its conditions are those of the
// alerts.
func (v *view) Attention() []notice {
	var n notices
	v.providerNotices(&n)
	v.locationNotices(&n)
	for _, account := range v.Accounts {
		v.accountNotices(&n, account)
	}
	v.topupNotices(&n)
	v.collectorNotices(&n)
	v.exporterNotices(&n)
	v.watchNotices(&n)
	slices.SortStableFunc(n, func(a, b notice) int { return compareClasses(a.Class, b.Class) })
	return n
}

// compareClasses sorts CSS classes by severity.
func compareClasses(a, b string) int {
	classes := []string{"bad", "warn", "info", "wait", "good"}
	return cmp.Compare(slices.Index(classes, a), slices.Index(classes, b))
}

// stateClass returns the CSS class of a state of the provider or of a component.
func stateClass(state string) string {
	switch {
	case strings.EqualFold(state, "operational"):
		return "good"
	case strings.Contains(strings.ToLower(state), "maintenance"):
		return "info"
	}
	return "bad"
}

func (v *view) providerNotices(n *notices) {
	overall := v.Label("overall", "status_info")
	class := stateClass(overall)
	if class == "bad" {
		class = "warn"
	}
	if class != "good" && overall != "" {
		n.add(class, "ProviderNotOperational", "Provider", "Overall state: "+text(overall)+".")
	}
	if ongoing := v.Value("incidents_ongoing"); ongoing != nil && *ongoing > 0 {
		n.add("warn", "IncidentOngoing", "Provider", count(int(*ongoing), "incident")+" ongoing.")
	}
	if scheduled := v.Value("maintenances_scheduled"); scheduled != nil && *scheduled > 0 {
		n.add("info", "MaintenanceScheduled", "Provider", count(int(*scheduled), "maintenance window")+" scheduled.")
	}
	generated, plans := v.Value("catalog_generated_timestamp_seconds"), v.Collector("plans", "")
	if generated != nil && plans.LastSuccess.Sub(at(*generated)) > 30*time.Minute {
		n.add("warn", "CatalogFrozen", "Catalog", "The provider has not updated it since "+v.moment(at(*generated))+".")
	}
}

func (v *view) locationNotices(n *notices) {
	for _, s := range v.samples["component_operational"] {
		if s.Value() == 1 {
			continue
		}
		location, name := s.Label("location"), s.Label("component")
		state := v.Label("state", "component_state", location, name)
		n.add(stateClass(state), "ComponentNotOperational", v.locationName(location), "Component "+text(name)+": "+text(state)+".")
	}
	for _, s := range v.samples["location_info"] {
		id := s.Label("location")
		if len(v.samples["component_operational"]) > 0 && len(v.Find("component_operational", id)) == 0 {
			n.add("warn", "LocationWithoutStatus", v.locationName(id), "The status has no component of this location.")
		}
		if plans := v.Value("location_plans", id); plans != nil && *plans > 0 && v.is(0, "location_plans_in_stock", id) {
			n.add("info", "LocationSoldOut", v.locationName(id), "Nothing is in stock.")
		}
	}
}

func (v *view) accountNotices(n *notices, account string) {
	subject := "Account " + text(account)
	if v.is(1, "exporter_api_token_rejected", account) {
		n.add("bad", "TokenRejected", subject, "The API token was rejected, or cannot be read.")
	}
	var suspended []string
	for _, s := range v.Find("server_status", account) {
		if strings.EqualFold(s.Label("status"), "suspended") {
			suspended = append(suspended, v.NameOf("hostname", "server_info", account, s.Label("server")))
		}
	}
	if len(suspended) > 0 {
		slices.Sort(suspended)
		n.add("bad", "ServerSuspended", subject, count(len(suspended), "server")+" suspended: "+join(suspended, 5)+".")
	}
	if v.is(0, "account_two_factor_enabled", account) {
		n.add("info", "TwoFactorDisabled", subject, "Two-factor authentication is disabled.")
	}
	balance, cost := v.Value("account_balance_usd", account), v.Value("account_cost_usd_per_month", account)
	switch {
	case balance == nil:
	case *balance < 0:
		class := "warn"
		if cost != nil && *cost > 0 || v.Lacking(serverPrice, account) > 0 { // servers are billed
			class = "bad"
		}
		n.add(class, "BalanceLow", subject, "The balance is negative: "+money(balance)+" USD.")
	case cost != nil && *balance < 0.1**cost:
		n.add("warn", "BalanceLow", subject, "The balance of "+money(balance)+" USD is less than 10 % of the monthly cost of "+money(cost)+" USD.")
	}
	if until, class := v.fundedUntil(account); class != "" {
		n.add(class, "RenewalsUnfunded", subject, "The balance cannot pay the renewals of "+v.Date(until)+".")
	}
}

func (v *view) topupNotices(n *notices) {
	for _, s := range v.samples["topup_info"] {
		account, id := s.Label("account"), s.Label("topup")
		subject, topup := "Account "+text(account), "A top-up of "+money(v.Value("topup_amount_usd", account, id))+" USD "
		created, locked := v.Value("topup_created_timestamp_seconds", account, id), v.Value("topup_rate_locked_until_timestamp_seconds", account, id)
		switch {
		case strings.EqualFold(s.Label("status"), "confirming"):
			if created != nil && v.Now.Sub(at(*created)) > 3*time.Hour {
				n.add("warn", "TopupStuck", subject, topup+"is confirming; it was created "+v.Ago(*created)+".")
			}
		case locked != nil && at(*locked).After(v.Now) && at(*locked).Sub(v.Now) <= 10*time.Minute:
			n.add("info", "TopupExpiring", subject, topup+"awaits its payment; the rate lock ends in "+duration(at(*locked).Sub(v.Now))+".")
		}
	}
}

func (v *view) collectorNotices(n *notices) {
	for _, c := range v.Collectors {
		subject := "Collector " + c.Collector
		if c.Account != "" {
			subject += " of account " + text(c.Account)
		}
		switch {
		case c.Unauthorized() && v.is(1, "exporter_api_token_rejected", c.Account): // said for the account
		case c.Err != nil:
			since := "failing since the start"
			if !c.LastSuccess.IsZero() {
				since = "no success since " + v.moment(c.LastSuccess)
			}
			n.add(c.Class, "CollectorFailing", subject, since+": "+clip(c.Err.Error(), maxError))
		case c.Stale:
			n.add("warn", "DataStale", subject, "The data is "+duration(c.Age)+" old.")
		}
		if c.Invalid.Items > 0 {
			n.add("warn", "ItemsInvalid", subject, count(c.Invalid.Items, "invalid item")+" in the last response: "+join(c.Causes, 1)+".")
		}
		if c.DuplicateOf != "" {
			n.add("warn", "", "Account "+text(c.Account), c.duplicate())
		}
	}
}

func (v *view) exporterNotices(n *notices) {
	for _, s := range v.samples["exporter_api_backoff_until_timestamp_seconds"] {
		subject := "Public requests"
		if account := s.Label("account"); account != "" {
			subject = "Account " + text(account)
		}
		if until := at(s.Value()); until.After(v.Now) {
			n.add("warn", "RateLimited", subject, "The API asked for a pause: no request is made for "+duration(until.Sub(v.Now))+".")
		}
	}
	if v.Configured.ReloadFailed {
		n.add("warn", "ConfigReloadFailed", "Configuration", "The last reload was refused, for the reason in the log. The former configuration is in force.")
	}
}

func (v *view) watchNotices(n *notices) {
	for _, w := range v.Configured.Watches {
		subject, alert, problem := "Watch "+text(w.Name), "", ""
		switch plans, catalog := v.Value("watch_plans", w.Name), v.Value("catalog_plans"); {
		case plans == nil:
			problem = "no data yet"
		case *plans > 0:
		case catalog == nil || *catalog == 0:
			problem = "no plan matches: the catalog is empty"
		default:
			alert, problem = "WatchEmpty", "no plan whose values are known matches, in stock or not: check its criteria"
		}
		for _, input := range w.Inputs() {
			if c := v.Collector(input, ""); !c.Known {
				alert, problem = "", "no data: "+input+": "+c.Words
			}
		}
		if problem != "" {
			n.add("warn", alert, subject, problem+".")
		}
		if hit := v.Value("watch_last_hit_timestamp_seconds", w.Name); hit != nil && v.Now.Sub(at(*hit)) <= 15*time.Minute {
			n.add("info", "WatchHit", subject, "A plan began to match "+v.Ago(*hit)+".")
		}
	}
}
