package web

import (
	"cmp"
	"slices"
	"strings"

	"server_rental_exporter/collector"
)

// notice is something that needs attention.
type notice struct {
	Class    string // bad, warn or info: the severity
	Text     string
	Subjects []string // of which the text holds
}

type notices []notice

// add has one notice for all subjects of the same text.
func (n *notices) add(class, subject, text string) {
	i := slices.IndexFunc(*n, func(other notice) bool { return other.Text == text && other.Class == class })
	if i < 0 {
		i = len(*n)
		*n = append(*n, notice{Class: class, Text: text})
	}
	(*n)[i].Subjects = append((*n)[i].Subjects, subject)
}

// Attention returns what needs attention as the data stands, urgent first. How long
// something may last is left to the alerts.
func (v *view) Attention() []notice {
	var n notices
	v.addProvider(&n)
	for _, w := range v.Watches {
		for _, unmet := range w.Unmet {
			n.add("warn", "Watch "+text(w.Name), "No plan has this value of "+unmet.Criterion+": "+text(unmet.Value)+".")
		}
	}
	for _, account := range v.Accounts {
		v.addAccount(&n, account)
	}
	for _, c := range v.Collectors {
		v.addCollector(&n, c)
	}
	if err := v.Config.ReloadError; err != nil {
		n.add("warn", "Configuration", "The last reload was refused, and the former configuration is in force: "+errorText(err.Error())+".")
	}
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
	case state == "unknown":
		return "warn"
	}
	return "bad"
}

func (v *view) addProvider(n *notices) {
	if overall := v.Label("overall", "status_info"); overall != "" && stateClass(overall) != "good" {
		n.add(stateClass(overall), "Provider", "Overall state: "+text(overall)+".")
	}
	if ongoing := v.Value("incidents_ongoing"); ongoing > 0 {
		n.add("warn", "Provider", count(int(ongoing), "incident")+" ongoing.")
	}
	if scheduled := v.Value("maintenances_scheduled"); scheduled > 0 {
		n.add("info", "Provider", count(int(scheduled), "maintenance window")+" scheduled.")
	}
	if !v.Row("status", "").Known {
		return
	}
	servers := v.serversByLocation()
	for _, location := range v.Locations() {
		there := ""
		if names := servers[location]; len(names) > 0 {
			there = " Servers there: " + join(names, 12) + "."
		}
		for _, s := range v.States(location) {
			if s.Class != "good" {
				n.add(s.Class, v.LocationName(location), "Component state "+s.Text+"."+there)
			}
		}
	}
}

// serversByLocation returns the names of the billed servers.
func (v *view) serversByLocation() map[string][]string {
	names := map[string][]string{}
	for _, s := range v.samples["server_info"] {
		if account, id := s.Label("account"), s.Label("server"); collector.Billed(v.Label("status", "server_status", account, id)) {
			names[s.Label("location")] = append(names[s.Label("location")], v.serverName(account, id))
		}
	}
	return names
}

// serverName returns the host name of a server and its account.
func (v *view) serverName(account, id string) string {
	return v.NameOf("hostname", "server_info", account, id) + " of " + text(account)
}

func (v *view) addAccount(n *notices, account string) {
	subject := "Account " + text(account)
	if v.Value("exporter_api_token_rejected", account) == 1 {
		n.add("bad", subject, "The API token was rejected, or cannot be read.")
	}
	for _, s := range v.Find("server_status", account) {
		if strings.EqualFold(s.Label("status"), "suspended") {
			n.add("bad", "Server "+v.serverName(account, s.Label("server")), "Suspended.")
		}
	}
	switch balance := v.Balance(account); balance.Class {
	case "bad":
		n.add("bad", subject, "The balance is negative: "+balance.Text+" USD.")
	case "warn":
		n.add("warn", subject, "The balance is below 10 percent of the monthly cost: "+balance.Text+" USD.")
	}
	if funded := v.Funded(account); funded.Class != "" {
		n.add(funded.Class, subject, "The balance cannot pay all renewals. Funded until: "+funded.Text+".")
	}
}

func (v *view) addCollector(n *notices, c *collectorRow) {
	subject := "Collector " + c.Collector
	if c.Account != "" {
		subject += " of " + text(c.Account)
	}
	if c.Err != nil && !(c.Unauthorized() && v.Value("exporter_api_token_rejected", c.Account) == 1) {
		n.add(c.Class, subject, "Failing: "+c.cause()+".")
	}
	if c.Invalid.Items > 0 {
		n.add("warn", subject, count(c.Invalid.Items, "invalid item")+" in the last response: "+join(c.Causes, 1)+".")
	}
	if c.DuplicateOf != "" {
		n.add("warn", "Account "+text(c.Account), "It is the same provider account as "+text(c.DuplicateOf)+": sums over accounts count it twice.")
	}
}
