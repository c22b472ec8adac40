package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Versions of Grafana 10.0 and of its panels, from which newer versions of Grafana migrate.
const (
	schemaVersion = 38
	pluginVersion = "10.4.0"
)

// board is a dashboard: what its kind does not share with the others.
type board struct {
	name        string // ends the uid, which never changes: bookmarks and links depend on it
	title       string
	description string
	from        string // default start of the time range
	refresh     string
	timezone    string
	rows        []row
}

type row struct {
	id        uint32
	title     string
	collapsed bool
	panels    []dashboard.Panel
}

const uidPrefix = "server-rental-"

// variablesOf lists the variables of each dashboard, in the order of the bar.
var variablesOf = map[string][]string{
	"stock":    {"datasource", "job", "location", "plan", "currency", "account"},
	"plan":     {"datasource", "job", "plan", "currency"},
	"accounts": {"datasource", "job", "account"},
	"status":   {"datasource", "job", "account", "location"},
}

func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{Selected: new(true), Text: dashboard.StringOrArrayOfString{String: &text}, Value: dashboard.StringOrArrayOfString{String: &value}}
}

// choice is a variable of several values. The value of All is all, or if it is empty, the values
// that are offered.
func choice(name, label, description, selector, all string) dashboard.VariableModel {
	return dashboard.VariableModel{
		Type: dashboard.VariableTypeQuery, Name: name, Label: &label, Description: &description, Datasource: &datasource,
		Query: &dashboard.StringOrMap{String: new("label_values(" + selector + ", " + name + ")")}, Refresh: new(dashboard.VariableRefreshOnTimeRangeChanged),
		Sort: new(dashboard.VariableSortNaturalAsc), Multi: new(true), IncludeAll: new(true), AllValue: &all,
		Current: &dashboard.VariableOption{
			Selected: new(true), Text: dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}}, Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		},
	}
}

func variable(name, board string) dashboard.VariableModel {
	switch name {
	case "datasource":
		return dashboard.VariableModel{
			Type: dashboard.VariableTypeDatasource, Name: name, Label: new("Data source"), Description: new("The Prometheus that scrapes the exporter."),
			Query: &dashboard.StringOrMap{String: new("prometheus")}, Hide: new(dashboard.VariableHideHideLabel), Current: new(option("default", "default")),
		}
	case "currency":
		euro := option("EUR", "eur")
		euro.Selected = new(false)
		return dashboard.VariableModel{
			Type: dashboard.VariableTypeCustom, Name: name, Label: new("Currency"), Description: new("Currency of catalog prices. Balances and servers are in US dollars only."),
			Query: &dashboard.StringOrMap{String: new("USD : usd, EUR : eur")}, Current: new(option("USD", "usd")), Options: []dashboard.VariableOption{option("USD", "usd"), euro},
		}
	case "account": // from a metric that exists even while the token is rejected
		return choice(name, "Account", "Accounts in the exporter's configuration.", own("exporter_collector_interval_seconds", `account!=""`), ".+")
	case "location":
		return choice(name, "Location", "Locations of the provider. They choose plans by where these are offered; a plan's stock is that of all locations.", own("location_info"), ".*")
	case "plan":
		if board == "plan" {
			v := choice(name, "Plan", "Plan of the catalog.", own("plan_info"), "")
			v.Multi, v.IncludeAll, v.Current = new(false), new(false), new(option("", ""))
			v.Current.Selected = nil
			return v
		}
		// All means those that are listed here. Plans without a location have no such label, and so belong to All locations only.
		return choice(name, "Plan", "Plans that are offered in the chosen locations.", selector("", `__name__=~"server_rental_plan_(info|offered)"`, location), "")
	}
	// Hidden, because few have more than one; links and the address keep it.
	v := choice(name, "Job", "Scrape jobs of the exporter.", definition("exporter_build_info").Name, ".+")
	v.Hide = new(dashboard.VariableHideHideVariable)
	return v
}

// inCurrency is the chosen currency, for titles.
const inCurrency = "${currency:text}"

// linkTo leads from a cell of a dashboard to another one. It keeps the time range and all variables
// that both have; one in the query replaces the present choice.
func linkTo(from, to, title, query string) link {
	var parts []string
	for _, v := range variablesOf[from] {
		if slices.Contains(variablesOf[to], v) && !strings.HasPrefix(query, "var-"+v+"=") {
			parts = append(parts, "${"+v+":queryparam}")
		}
	}
	if query != "" {
		parts = append(parts, query)
	}
	return link{title, "/d/" + uidPrefix + to + "?" + strings.Join(append(parts, "${__url_time_range}"), "&"), false}
}

// annotation marks times in all panels but some.
type annotation struct {
	dashboard.AnnotationQuery
	// The SDK's list of ids is one of bytes, which JSON makes a text.
	Filter object `json:"filter"`
}

func newAnnotation(name, colour, expr, title, text, tags string) annotation {
	a := annotation{AnnotationQuery: dashboard.AnnotationQuery{Name: name, Datasource: &datasource, Enable: true, IconColor: colour}}
	// Grafana 10 and 11 read these, newer versions the target.
	a.Expr, a.Step, a.TitleFormat, a.TextFormat, a.TagKeys = &expr, new("2m"), &title, &text, &tags
	q := course("Anno", "", expr)
	q.Interval, q.LegendFormat = a.Step, nil
	a.Target = q
	return a
}

// place puts each panel as high, then as far left as possible, so that small ones stack beside a
// large one. It returns where the next row starts.
func place(panels []dashboard.Panel, top uint32) uint32 {
	depth := slices.Repeat([]uint32{top}, 24)
	for _, p := range panels {
		at := p.GridPos
		at.Y = 1 << 30
		for x := range 25 - at.W {
			if y := slices.Max(depth[x : x+at.W]); y < at.Y {
				at.X, at.Y = x, y
			}
		}
		for x := range at.W {
			depth[at.X+x] = at.Y + at.H
		}
	}
	return slices.Max(depth)
}

// file is a dashboard with our annotations.
type file struct {
	dashboard.Dashboard
	Annotations struct {
		List []annotation `json:"list"`
	} `json:"annotations"`
}

// build returns the dashboard, of which Health is the first row.
func (b board) build(annotations ...annotation) file {
	d := file{Dashboard: *dashboard.NewDashboard()}
	d.Uid, d.Title, d.Description, d.Version, d.SchemaVersion = new(uidPrefix+b.name), &b.title, &b.description, new(uint32(1)), schemaVersion
	d.Time, d.Refresh, d.Timezone = &dashboard.DashboardDashboardTime{From: b.from, To: "now"}, &b.refresh, &b.timezone
	d.GraphTooltip, d.Editable = new(dashboard.DashboardCursorSyncCrosshair), new(true)
	d.Tags = []string{"prometheus"}
	if b.name != "plan" { // not in the list of dashboards, which would pass several plans
		d.Tags = []string{"server-rental", "prometheus"}
	}
	for _, v := range variablesOf[b.name] {
		d.Templating.List = append(d.Templating.List, variable(v, b.name))
	}
	d.Links = []dashboard.DashboardLink{{Title: "Dashboards", Type: dashboard.DashboardLinkTypeDashboards, Tags: []string{"server-rental"}, AsDropdown: true, IncludeVars: true, KeepTime: true}}
	timelines := b.addRows(&d.Dashboard)
	d.Annotations.List = []annotation{}
	for _, a := range annotations {
		a.Filter = object{"exclude": true, "ids": timelines} // a mark on a timeline would hide what it marks
		d.Annotations.List = append(d.Annotations.List, a)
	}
	return d
}

// addRows adds the rows and their panels, and returns the ids of timelines.
func (b board) addRows(d *dashboard.Dashboard) []uint32 {
	timelines, y := []uint32{}, uint32(0)
	for _, r := range append([]row{{id: 900, title: "Health", panels: health(b.name)}}, b.rows...) {
		header := dashboard.RowPanel{Type: "row", Id: r.id, Title: &r.title, Collapsed: r.collapsed, GridPos: &dashboard.GridPos{Y: y, W: 24, H: 1}, Panels: []dashboard.Panel{}}
		end := place(r.panels, y+1)
		for _, p := range r.panels {
			if p.Type == "state-timeline" {
				timelines = append(timelines, *p.Id)
			}
		}
		y = end
		if r.collapsed { // contains its panels and takes one line
			header.Panels, y = r.panels, header.GridPos.Y+1
			r.panels = nil
		}
		d.Panels = append(d.Panels, dashboard.PanelOrRowPanel{RowPanel: &header})
		for _, p := range r.panels {
			d.Panels = append(d.Panels, dashboard.PanelOrRowPanel{Panel: &p})
		}
	}
	return timelines
}

var plainObject = regexp.MustCompile(`([{\[])\n\s+([^{}\[\]]+?)\n\s+([}\]])`)

// text returns the dashboard as JSON in which an object or a list of plain values is one line.
func (f file) text() ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(f); err != nil {
		return nil, err
	}
	return plainObject.ReplaceAllFunc([]byte(b.String()), func(m []byte) []byte {
		return regexp.MustCompile(`\n\s+`).ReplaceAll(regexp.MustCompile(`^(.)\n\s+|\n\s+(.)$`).ReplaceAll(m, []byte("$1$2")), []byte(" "))
	}), nil
}

// write writes the dashboard to the working directory.
func (f file) write() error {
	text, err := f.text()
	if err != nil {
		return err
	}
	return os.WriteFile(*f.Uid+".json", text, 0o644)
}
