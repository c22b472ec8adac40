package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// notice is something that needs attention.
type notice struct {
	Class string // bad, warn or info: the severity
	Kind  string // what the text is about, such as Server
	Text  string
	Names []string // the text holds for each of them
}

// Subject returns what a notice is about: one thing by its name, several by their number.
func (n notice) Subject() string {
	if len(n.Names) == 1 {
		return strings.TrimSpace(n.Kind + " " + n.Names[0])
	}
	return strconv.Itoa(len(n.Names)) + " " + strings.ToLower(n.Kind) + "s"
}

type notices []notice

// add has one notice for all names of a kind that have the same text.
func (n *notices) add(class, kind, name, text string) {
	i := slices.IndexFunc(*n, func(other notice) bool { return other.Text == text && other.Class == class && other.Kind == kind })
	if i < 0 {
		i = len(*n)
		*n = append(*n, notice{Class: class, Kind: kind, Text: text})
	}
	(*n)[i].Names = append((*n)[i].Names, name)
}

// Attention returns what needs attention as the data stands, urgent first. Thresholds, and how
// long something may last, are left to the alerts.
func (v *view) Attention() []notice {
	var n notices
	v.addProvider(&n)
	for _, account := range v.Accounts {
		v.addAccount(&n, account)
	}
	first := map[string]string{} // key: the provider's id of the account
	for _, s := range v.Find("account_info") {
		account, id := s.Label("account"), s.Label("id")
		if other, found := first[id]; found {
			n.add("warn", "Account", text(account), "It is the same provider account as "+text(other)+": sums over accounts count it twice.")
		} else {
			first[id] = account
		}
	}
	for _, c := range v.Collectors {
		n.addCollector(c)
	}
	if err := v.Configured().ReloadError; err != nil {
		n.add("warn", "Configuration", "", "The last reload was refused, and the former configuration is in force: "+errorText(err)+".")
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
	}
	return "bad"
}

func (v *view) addProvider(n *notices) {
	if overall := v.Label("overall", "status_info"); overall != "" && stateClass(overall) != "good" {
		n.add(stateClass(overall), "Provider", "", "Overall state: "+text(overall)+".")
	}
	if ongoing := v.Value("incidents_ongoing"); ongoing > 0 {
		n.add("warn", "Provider", "", "Ongoing incidents: "+number(ongoing)+".")
	}
	if scheduled := v.Value("maintenances_scheduled"); scheduled > 0 {
		n.add("info", "Provider", "", "Scheduled maintenance windows: "+number(scheduled)+".")
	}
	for _, location := range v.Locations() {
		for _, state := range v.States(location) {
			if state.Class != "good" && state.Class != "wait" {
				n.add(state.Class, "Location", text(location), "Component state "+state.Text+".")
			}
		}
	}
}

func (v *view) addAccount(n *notices, account string) {
	for _, s := range v.Find("server_status", account) {
		if id := s.Label("server"); strings.EqualFold(s.Label("status"), "suspended") {
			n.add("bad", "Server", v.NameOf("hostname", "server_info", account, id)+" of "+text(account), "Suspended.")
		}
	}
	if balance := v.Value("account_balance_usd", account); balance <= -0.005 { // what money shows as negative
		n.add("bad", "Account", text(account), "The balance is negative: "+money(balance)+" USD.")
	}
	if v.Value("account_two_factor_enabled", account) == 0 {
		n.add("info", "Account", text(account), "Two-factor authentication is off.")
	}
	if funded := v.Funded(account); funded.Class != "" {
		n.add(funded.Class, "Account", text(account), "The balance cannot pay all renewals. Funded until: "+funded.Text+".")
	}
}

func (n *notices) addCollector(c *collectorRow) {
	name := c.Collector + c.Of
	if c.Err != nil {
		n.add(c.Class, "Collector", name, "Failing: "+errorText(c.Err)+".")
	}
	if c.Invalid.Items > 0 {
		n.add("warn", "Collector", name, "Invalid items in the last response: "+strconv.Itoa(c.Invalid.Items)+" ("+join(c.Causes)+").")
	}
}
