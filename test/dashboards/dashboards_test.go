// Package dashboards_test checks the committed dashboards: that their queries can be read, and name
// only metrics and labels that exist; that tables, units and links fit; and that promtool evaluates queries as
// it should. What all panels have the generator gives them.
package dashboards_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/grafana"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestReadable checks that people can read and change the queries in Grafana's editor, and that all variables are of use.
func TestReadable(t *testing.T) {
	var lengths []int
	panels := 0
	banned := regexp.MustCompile(`\$\{?__(to|from)\b|@|count_values`)
	for uid, d := range grafana.Load(t) {
		panels += len(slices.DeleteFunc(d.Panels, func(p grafana.Panel) bool { return p.Type == "row" }))
		for _, v := range d.Templating.List {
			used := regexp.MustCompile(`\$\{?` + v.Name + `\b`)
			isUsed := slices.ContainsFunc(d.Queries(), func(q grafana.Query) bool { return used.MatchString(q.Expr) })
			if v.Hide == 2 || strings.Contains(v.Query, "query_result") || !isUsed && v.Type != "datasource" {
				t.Errorf("%s: variable %s is hidden, a result of a query, or unused", uid, v.Name)
			}
		}
		for _, q := range d.Queries() {
			if len(q.Expr) > 400 || banned.MatchString(q.Expr) {
				t.Errorf("%s: got %d characters, want 400 at most, and no times of the range, modifier @ or count_values", q.Key, len(q.Expr))
			}
			lengths = append(lengths, len(q.Expr))
		}
	}
	slices.Sort(lengths)
	if median := lengths[len(lengths)/2]; median > 99 || panels > 48 {
		t.Errorf("got a median of %d characters, and %d panels, want 99 and 48 at most", median, panels)
	}
}

// unit matches the units that panels may use. Grafana's units for currencies and rates
// abbreviate thousands, and its days become weeks.
var unit = regexp.MustCompile(`^(none|percentunit|bytes|s|dtdurations|dateTimeFromNow|time:[-YMDHms: ]+|(prefix|suffix):[a-zA-Z ]+)$`)

func TestPanels(t *testing.T) {
	for uid, d := range grafana.Load(t) {
		ids := map[int]bool{}
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s, panel %d %s", uid, p.ID, p.Title)
			if p.ID <= 0 || ids[p.ID] || p.Title == "" {
				t.Errorf("%s: want a title, and an id that no other panel has", where)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if !strings.HasSuffix(p.Description, ".") || len(p.Targets) == 0 {
				t.Errorf("%s: got description %q, %d queries", where, p.Description, len(p.Targets))
			}
			for _, u := range append(overrides[string](t, p, "unit"), p.FieldConfig.Defaults.Unit) {
				if !unit.MatchString(u) {
					t.Errorf("%s: got unit %q, want one that matches %s", where, u, unit)
				}
			}
			if p.Type == "table" {
				checkTable(t, where, p)
			}
		}
	}
}

// overrides returns the values of a property that is overridden for some fields.
func overrides[T any](t *testing.T, p grafana.Panel, id string) (all []T) {
	t.Helper()
	for _, o := range p.FieldConfig.Overrides {
		for _, prop := range o.Properties {
			var value T
			if prop.ID != id {
				continue
			}
			if err := json.Unmarshal(prop.Value, &value); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			all = append(all, value)
		}
	}
	return all
}

// TestContrast checks that text is legible on each fixed colour, which all are dark ones of a cell or tile, on which Grafana
// writes almost white. The panel's background, and the colour of texts for it, are Grafana's.
func TestContrast(t *testing.T) {
	colour := regexp.MustCompile(`"color": ?"(.*?)"`)
	for uid, d := range grafana.Load(t) {
		for _, p := range d.Panels {
			text, _ := json.Marshal(p.FieldConfig)
			for _, parts := range colour.FindAllStringSubmatch(string(text), -1) {
				if parts[1] != "panel-bg" && contrast(t, parts[1]) < 4.5 {
					t.Errorf("%s, panel %s: text on %s has a contrast of %.2f, want 4.5", uid, p.Title, parts[1], contrast(t, parts[1]))
				}
			}
		}
	}
}

// contrast is that of WCAG 2, between a colour and text. In the light theme, a tenth of a cell's colour is white.
func contrast(t *testing.T, colour string) float64 {
	t.Helper()
	var rgb [3]uint8
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatalf("%s: want a fixed colour: %v", colour, err)
	}
	for i := range rgb {
		rgb[i] = uint8(0.9*float64(rgb[i]) + 0.1*255)
	}
	return (luminance([3]uint8{247, 248, 250}) + 0.05) / (luminance(rgb) + 0.05)
}

// luminance is the relative one of WCAG 2.
func luminance(rgb [3]uint8) (sum float64) {
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb[i]) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

// checkTable checks that the labels of each query have a column or are hidden, and that the column by
// which a table is sorted exists.
func checkTable(t *testing.T, where string, p grafana.Panel) {
	t.Helper()
	// On a screen of 1440 pixels with the menu docked, a panel of the whole width has 1106 for its columns.
	widths := 0.0
	for _, o := range p.FieldConfig.Overrides {
		last := 0.0 // of a column's, which replaces those before
		for _, prop := range o.Properties {
			if prop.ID == "custom.width" || prop.ID == "custom.minWidth" {
				_ = json.Unmarshal(prop.Value, &last)
			}
		}
		widths += last
	}
	if room := 1106*p.GridPos.W/24 - 16; widths > room {
		t.Errorf("%s: columns need %.0f pixels, and there are %.0f: make one narrower, or the panel wider", where, widths, room)
	}
	shown, placed := map[string]bool{}, map[string]bool{}
	for _, tr := range p.Transformations {
		for from, to := range tr.Options.RenameByName {
			shown[to], placed[from] = true, true
		}
		for name := range tr.Options.ExcludeByName {
			placed[name] = true
		}
		for _, name := range []string{tr.Options.ValueField, tr.Options.RowField, tr.Options.ColumnField} { // of a matrix
			placed[name] = true
		}
	}
	// By columns, by the first query, in whose order Grafana puts what is not known last, or both.
	missing := slices.ContainsFunc(p.Options.SortBy, func(s grafana.SortBy) bool { return !shown[s.DisplayName] })
	if byQuery := strings.HasPrefix(p.Targets[0].Expr, "sort("); missing || len(p.Options.SortBy) == 0 && !byQuery {
		t.Errorf("%s: is sorted by %v and %s, want some of %v or a query", where, p.Options.SortBy, p.Targets[0].Expr, slices.Sorted(maps.Keys(shown)))
	}
	made := "" // the names of the values and labels of all queries
	for _, q := range p.Targets {
		made += "Value #" + q.RefID + " " + q.Expr
		if by := regexp.MustCompile(`by \((.*?)\)`).FindStringSubmatch(q.Expr); by != nil {
			for _, label := range strings.Split(by[1], ", ") {
				if !placed[label] {
					t.Errorf("%s: the label %s has neither name nor is it hidden", where, label)
				}
			}
		}
	}
	for _, tr := range p.Transformations {
		for from := range tr.Options.RenameByName {
			if from != "Value" && !strings.Contains(from, `\`) && !strings.Contains(made, from) {
				t.Errorf("%s: no query has %s", where, from)
			}
		}
	}
}

// counter matches a counter, and counted one that is read through a rate or an increase.
var (
	counter = regexp.MustCompile(`_(total|bucket)\b`)
	counted = regexp.MustCompile(`(?:\brate\([^[(]*_(?:total|bucket)\b[^[(]*\[\$__rate_interval|\bincrease\([^[(]*_total\b[^[(]*\[[^]]*)\]`)
)

// TestQueries checks that queries name only metrics and labels that exist, also for a legend, and read counters through a rate
// over $__rate_interval or an increase.
func TestQueries(t *testing.T) {
	known := promqltest.Exported()
	known.Add("up")
	known.AddRecorded(t)
	known["ALERTS"] = sets.New("alertname", "alertstate", "severity", "kind", "account", "server", "plan", "what") // the last is joined of others
	known["ALERTS_FOR_STATE"] = sets.New("alertname", "severity")
	values := map[string]string{"__rate_interval": "1m", "__interval": "1m", "currency": "usd"}
	for _, name := range []string{"account", "location", "plan", "watch"} {
		values[name] = "$" + name
	}
	for _, d := range grafana.Load(t) {
		for _, q := range d.Queries() {
			if err := known.Check(grafana.Interpolate(q.Expr, values)); err != nil {
				t.Errorf("%s: %v", q.Key, err)
			}
			if len(counter.FindAllString(q.Expr, -1)) != len(counted.FindAllString(q.Expr, -1)) {
				t.Errorf("%s: got %s, want counters in rates over $__rate_interval or increases", q.Key, q.Expr)
			}
			for _, label := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if by := regexp.MustCompile(`\bby \([^)]*\b` + label[1] + `\b`); !by.MatchString(q.Expr) && label[1] != "instance" {
					t.Errorf("%s: the legend names %s, which the result does not have", q.Key, label[1])
				}
			}
		}
	}
}

// TestLinks checks that links lead to a dashboard, to a heading of a document, or to the provider's or the exporter's page.
func TestLinks(t *testing.T) {
	const main = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/"
	all, documents := grafana.Load(t), repo.Documents(t)
	for uid, d := range all {
		var links []grafana.Link
		for _, p := range d.Panels {
			links = slices.Concat(links, p.Links, slices.Concat(overrides[[]grafana.Link](t, p, "links")...))
		}
		for _, l := range links {
			path, _, _ := strings.Cut(strings.TrimPrefix(l.URL, "/d/"), "?")
			document, heading, _ := strings.Cut(strings.TrimPrefix(l.URL, main), "#")
			heading, _, _ = strings.Cut(heading, ":~:") // the text to which browsers scroll from there
			elsewhere := []string{"${__value.raw}", "${__field.labels.order}", "http://${__value.raw}/"}
			if _, toDashboard := all[path]; !toDashboard && !slices.Contains(elsewhere, l.URL) && !documents[document].Anchor[heading] {
				t.Errorf("%s: %s: leads to no dashboard and no heading of a document", uid, l.URL)
			}
		}
	}
}
