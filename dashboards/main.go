// Writes the dashboards to the working directory. Names and descriptions of metrics are those of the
// exporter's definitions.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

//go:generate go run .

func main() {
	for _, b := range boards() {
		if err := os.WriteFile(b.file(), b.json(), 0o644); err != nil { //nolint:gosec // everybody may read them
			log.Fatal(err)
		}
	}
}

func boards() []board { return []board{stock(), onePlan(), accounts(), status()} }

const (
	pluginVersion = "10.4.0" // of panels: newer versions migrate them
	uidPrefix     = "server-rental-"
	inCurrency    = "${currency:text}" // the chosen one, for titles
)

// variablesOf lists the variables of each dashboard, in the order of the bar.
var variablesOf = map[string][]string{
	"stock":    {"datasource", "location", "watch", "plan", "currency", "account"},
	"plan":     {"datasource", "plan", "currency"},
	"accounts": {"datasource", "account"},
	"status":   {"datasource", "account", "location"},
}

// board is a dashboard: what not all of them have.
type board struct {
	name        string // ends the uid, which never changes: bookmarks and links depend on it
	title       string
	description string
	from        string // default start of the time range
	timezone    string // the browser's by default
	rows        []row
}

// row is a row of panels. The first one has no title.
type row struct {
	id     uint32
	title  string
	panels []dashboard.Panel
}

// built is a panel in place of its builder.
type built struct{ dashboard.Panel }

func (b built) Build() (dashboard.Panel, error) { return b.Panel, nil }

func option(text, value string) dashboard.VariableOption {
	type either = dashboard.StringOrArrayOfString
	return dashboard.VariableOption{Selected: new(true), Text: either{String: &text}, Value: either{String: &value}}
}

// choice is a variable of several values of a label. The value of All is all, or if it is empty, the values that are offered.
func choice(name, label, description, selector, all string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Description(description).Datasource(datasource).
		Query(dashboard.StringOrMap{String: new("label_values(" + selector + ", " + name + ")")}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc).
		Multi(true).IncludeAll(true).AllValue(all).Current(option("All", "$__all"))
}

func variable(name, board string) cog.Builder[dashboard.VariableModel] {
	switch {
	case name == "datasource":
		return dashboard.NewDatasourceVariableBuilder(name).Label("Data source").Description("The Prometheus that scrapes the exporter.").
			Type("prometheus").Hide(dashboard.VariableHideHideLabel).Current(option("default", "default"))
	case name == "currency":
		return dashboard.NewCustomVariableBuilder(name).Label("Currency").
			Description("Currency of catalog prices. Balances and servers are in US dollars only.").
			Values(dashboard.StringOrMap{String: new("USD : usd, EUR : eur")}).Current(option("USD", "usd")).
			Options([]dashboard.VariableOption{option("USD", "usd"), option("EUR", "eur")})
	case name == "account": // from a metric that exists even while the token is rejected
		return choice(name, "Account", "Accounts in the exporter's configuration.", own(interval, `account!=""`), ".+")
	case name == "location":
		return choice(name, "Location", "They choose plans by where these are offered; stock is that of all.", own("location_info"), ".*")
	case name == "watch":
		return choice(name, "Watch", "They choose the plans that match. Use all locations with one.", own("watch_plans"), ".*")
	case board == "plan":
		return choice(name, "Plan", "Plan of the catalog.", own("plan_info"), "").Multi(false).IncludeAll(false).Current(option("", ""))
	}
	// All means those that are listed here. Metrics without a label belong to all of its values only.
	return choice(name, "Plan", "Plans that are offered in the chosen locations, or match the chosen watches.",
		`{__name__=~"server_rental_(plan_(info|offered)|watch_plan_in_stock)", `+location+", "+watch+"}", "")
}

// linkTo leads from a cell of a dashboard to another one. It keeps the time range and all variables
// that both have; those in the query replace the present choice.
func linkTo(from, to, title, query string) link {
	parts := []string{"${__url_time_range}"}
	for _, v := range variablesOf[from] {
		if slices.Contains(variablesOf[to], v) && !strings.Contains(query, "var-"+v+"=") {
			parts = append(parts, "${"+v+":queryparam}")
		}
	}
	return link{Title: title, URL: "/d/" + uidPrefix + to + "?" + strings.Join(append(parts, query), "&")}
}

// build returns the dashboard.
func (b board) build() dashboard.Dashboard { //nolint:staticcheck // dashboardv2 is for Grafana 12 and newer
	d := dashboard.NewDashboardBuilder(b.title) //nolint:staticcheck // as above
	d.Uid(uidPrefix+b.name).Description(b.description).Version(1).Time(b.from, "now").Refresh("1m").
		Timezone(cmp.Or(b.timezone, "browser")).Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Tags([]string{"server-rental", "prometheus"})
	if b.name == "plan" { // not in the list of dashboards, which would pass several plans
		d.Tags([]string{"prometheus"})
	}
	for _, v := range variablesOf[b.name] {
		d.WithVariable(variable(v, b.name))
	}
	for _, r := range b.rows {
		if r.title != "" {
			d.WithRow(dashboard.NewRowBuilder(r.title).Id(r.id))
		}
		for _, p := range r.panels {
			d.WithPanel(built{p})
		}
	}
	out, err := d.Build()
	if err != nil {
		panic(err)
	}
	out.SchemaVersion = 38 // of Grafana 10.0: newer versions migrate it
	// The SDK's builder of links would put them into a menu.
	out.Links = []dashboard.DashboardLink{{
		Title: "Dashboards", Type: dashboard.DashboardLinkTypeDashboards, Tags: []string{"server-rental"},
		AsDropdown: true, IncludeVars: true, KeepTime: true,
	}}
	return out
}

var (
	plainObject = regexp.MustCompile(`[{\[]\n\s+[^{}\[\]]+?\n\s+[}\]]`)
	lineBreak   = regexp.MustCompile(`\n\s+`)
)

func (b board) file() string { return uidPrefix + b.name + ".json" }

// json returns the dashboard as JSON, in which an object or a list of plain values is one line.
func (b board) json() []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(b.build()); err != nil {
		panic(err)
	}
	return plainObject.ReplaceAllFunc(text.Bytes(), func(m []byte) []byte { return lineBreak.ReplaceAll(m, []byte(" ")) })
}
