package web

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"server_rental_exporter/collector"
)

type notice struct {
	Class         string // bad, warn or info: the severity
	Alert         string // that fires if this lasts, without its prefix; empty if there is none
	Subject, Text string
}

// notices are collected in the order of the sections that they belong to.
type notices []notice

// when adds a notice if its condition holds; one that compares a value that is not known
// does not.
func (n *notices) when(condition bool, class, alert, subject, text string) {
	if condition {
		*n = append(*n, notice{class, alert, subject, text})
	}
}

// Attention returns what needs attention, urgent first. Its conditions are those of the
// alerts.
func (v *view) Attention() []notice {
	var n notices
	v.providerNotices(&n)
	for _, account := range v.Accounts {
		v.accountNotices(&n, account)
	}
	v.topupNotices(&n)
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
	n.when(class != "good" && overall != "", class, "ProviderNotOperational", "Provider", "Overall state: "+text(overall)+".")
	ongoing, scheduled := v.Value("incidents_ongoing"), v.Value("maintenances_scheduled")
	n.when(ongoing > 0, "warn", "IncidentOngoing", "Provider", count(int(ongoing), "incident")+" ongoing.")
	n.when(scheduled > 0, "info", "MaintenanceScheduled", "Provider", count(int(scheduled), "maintenance window")+" scheduled.")
	generated := v.Time("catalog_generated_timestamp_seconds")
	frozen := !generated.IsZero() && v.Collector("plans", "").LastSuccess.Sub(generated) > 30*time.Minute
	n.when(frozen, "warn", "CatalogFrozen", "Catalog", "The provider has not updated it since "+v.moment(generated)+".")
	components := v.Find("component_operational")
	for _, s := range components {
		location, name := s.Label("location"), s.Label("component")
		state := v.Label("state", "component_state", location, name)
		n.when(s.Value() != 1, stateClass(state), "ComponentNotOperational", v.locationName(location), "Component "+text(name)+": "+text(state)+".")
	}
	for _, s := range v.Find("location_info") {
		id := s.Label("location")
		unnamed := len(components) > 0 && len(v.Find("component_operational", id)) == 0
		n.when(unnamed, "warn", "LocationWithoutStatus", v.locationName(id), "The status has no component of this location.")
		soldOut := v.Value("location_plans", id) > 0 && v.Value("location_plans_in_stock", id) == 0
		n.when(soldOut, "info", "LocationSoldOut", v.locationName(id), "Nothing is in stock.")
	}
}

func (v *view) accountNotices(n *notices, account string) {
	subject := "Account " + text(account)
	n.when(v.Value("exporter_api_token_rejected", account) == 1, "bad", "TokenRejected", subject, "The API token was rejected, or cannot be read.")
	var suspended []string
	for _, s := range v.Find("server_status", account) {
		if strings.EqualFold(s.Label("status"), "suspended") {
			suspended = append(suspended, v.NameOf("hostname", "server_info", account, s.Label("server")))
		}
	}
	slices.Sort(suspended)
	n.when(len(suspended) > 0, "bad", "ServerSuspended", subject, count(len(suspended), "server")+" suspended: "+join(suspended, 5)+".")
	n.when(v.Value("account_two_factor_enabled", account) == 0, "info", "TwoFactorDisabled", subject, "Two-factor authentication is disabled.")
	balance, cost := v.Value("account_balance_usd", account), v.Value("account_cost_usd_per_month", account)
	class := "warn"
	if balance < 0 && (cost > 0 || v.Lacking(serverPrice, account) > 0) { // servers are billed
		class = "bad"
	}
	n.when(balance < 0, class, "BalanceLow", subject, "The balance is negative: "+money(balance)+" USD.")
	n.when(balance >= 0 && balance < 0.1*cost, "warn", "BalanceLow", subject,
		"The balance of "+money(balance)+" USD is less than 10 % of the monthly cost of "+money(cost)+" USD.")
	until, class := v.fundedUntil(account)
	n.when(class != "", class, "RenewalsUnfunded", subject, "The balance cannot pay the renewals of "+v.Date(until)+".")
}

func (v *view) topupNotices(n *notices) {
	for _, s := range v.Find("topup_info") {
		account, id := s.Label("account"), s.Label("topup")
		subject, topup := "Account "+text(account), "A top-up of "+money(v.Value("topup_amount_usd", account, id))+" USD "
		created := v.Time("topup_created_timestamp_seconds", account, id)
		left := v.Time("topup_rate_locked_until_timestamp_seconds", account, id).Sub(v.Now)
		confirming := strings.EqualFold(s.Label("status"), "confirming")
		stuck := confirming && !created.IsZero() && v.Now.Sub(created) > 3*time.Hour
		n.when(stuck, "warn", "TopupStuck", subject, topup+"is confirming; it was created "+v.Ago(created)+".")
		expiring := !confirming && left > 0 && left <= 10*time.Minute
		n.when(expiring, "info", "TopupExpiring", subject, topup+"awaits its payment; the rate lock ends in "+duration(left)+".")
	}
}

func (v *view) exporterNotices(n *notices) {
	for _, c := range v.Collectors {
		if c.Class == "good" && c.DuplicateOf == "" { // nearly all of thousands
			continue
		}
		subject, failure := "Collector "+c.Collector, ""
		if c.Account != "" {
			subject += " of account " + text(c.Account)
		}
		switch {
		case c.Err == nil:
		case c.Unauthorized() && v.Value("exporter_api_token_rejected", c.Account) == 1: // said for the account
		case c.LastSuccess.IsZero():
			failure = "failing since the start: " + clip(c.Err.Error(), maxError)
		default:
			failure = "no success since " + v.moment(c.LastSuccess) + ": " + clip(c.Err.Error(), maxError)
		}
		n.when(failure != "", c.Class, "CollectorFailing", subject, failure)
		n.when(c.Err == nil && c.Stale, "warn", "DataStale", subject, "The data is "+duration(c.Age)+" old.")
		n.when(c.Invalid.Items > 0, "warn", "ItemsInvalid", subject, count(c.Invalid.Items, "invalid item")+" in the last response: "+join(c.Causes, 1)+".")
		n.when(c.DuplicateOf != "", "warn", "", "Account "+text(c.Account), c.duplicate())
	}
	for _, s := range v.Find("exporter_api_backoff_until_timestamp_seconds") {
		subject := "Public requests"
		if account := s.Label("account"); account != "" {
			subject = "Account " + text(account)
		}
		left := at(s.Value()).Sub(v.Now)
		n.when(left > 0, "warn", "RateLimited", subject, "The API asked for a pause: no request is made for "+duration(left)+".")
	}
	n.when(v.Configured.ReloadFailed, "warn", "ConfigReloadFailed", "Configuration",
		"The last reload was refused, for the reason in the log. The former configuration is in force.")
}

func (v *view) watchNotices(n *notices) {
	for _, w := range v.Configured.Watches {
		subject := "Watch " + text(w.Name)
		alert, problem := v.watchProblem(w)
		n.when(problem != "", "warn", alert, subject, problem+".")
		hit := v.Time("watch_last_hit_timestamp_seconds", w.Name)
		n.when(v.Now.Sub(hit) <= 15*time.Minute, "info", "WatchHit", subject, "A plan began to match "+v.Ago(hit)+".")
	}
}

// watchProblem returns why no plan matches a watch, and the alert about that; empty if
// plans match.
func (v *view) watchProblem(w collector.Watch) (alert, problem string) {
	for _, input := range w.Inputs() {
		if c := v.Collector(input, ""); !c.Known {
			return "", "no data: " + input + ": " + c.Words
		}
	}
	switch plans := v.Value("watch_plans", w.Name); {
	case math.IsNaN(plans):
		return "", "no data yet"
	case plans > 0:
		return "", ""
	case v.Value("catalog_plans") > 0:
		return "WatchEmpty", "no plan whose values are known matches, in stock or not: check its criteria"
	}
	return "", "no plan matches: the catalog is empty"
}
