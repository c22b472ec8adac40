package main

import (
	"cmp"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
)

type (
	query          = prometheus.Dataquery
	property       = dashboard.DynamicConfigValue
	mapping        = dashboard.ValueMapping
	step           = dashboard.Threshold
	override       = dashboard.DashboardFieldConfigSourceOverrides
	transformation = dashboard.DataTransformerConfig
	object         = map[string]any // options for which the SDK has no type
)

const documents = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/"

// datasource is the one that the user chooses.
var datasource = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// One palette, of backgrounds: no colour of text has enough contrast in both of Grafana's themes, but its white text on
// these has. Red says bad and green good, grey is what is not known, and what has no colour has the panel's background.
const (
	good, warn, bad = "#15702f", "#9a4600", "#c4162a"
	plain, unknown  = "#1f60c4", "#606060"
	none            = "panel-bg"
)

// Units that show the whole value, and its sign first: Grafana's own abbreviate thousands or change to minutes and weeks.
const (
	percent, span, duration = "percentunit", "s", "dtdurations"
	ago, date               = "dateTimeFromNow", "time:YYYY-MM-DD" // of milliseconds
	endless                 = 1e18                                 // ends a range: Grafana 11 matches none without an end
)

// from is a threshold; rising are thresholds in ascending order, of which the first colour applies below all others.
func from(value float64, colour string) step { return step{Value: &value, Color: colour} }

func rising(first string, more ...step) *dashboard.ThresholdsConfig {
	return &dashboard.ThresholdsConfig{Mode: "absolute", Steps: append([]step{{Color: first}}, more...)}
}

// result is what a mapping shows; an empty text leaves the value's own.
func result(text, colour string) dashboard.ValueMappingResult {
	if text == "" {
		return dashboard.ValueMappingResult{Color: &colour}
	}
	return dashboard.ValueMappingResult{Text: &text, Color: &colour}
}

// value maps one value, between a range, words texts that match a pattern, and noData what is not known.
func value(of, text, colour string) mapping {
	results := map[string]dashboard.ValueMappingResult{of: result(text, colour)}
	return mapping{ValueMap: &dashboard.ValueMap{Type: "value", Options: results}}
}

func between(from, to float64, text, colour string) mapping {
	options := dashboard.DashboardRangeMapOptions{From: &from, To: &to, Result: result(text, colour)}
	return mapping{RangeMap: &dashboard.RangeMap{Type: "range", Options: options}}
}

func words(pattern, text, colour string) mapping {
	options := dashboard.DashboardRegexMapOptions{Pattern: pattern, Result: result(text, colour)}
	return mapping{RegexMap: &dashboard.RegexMap{Type: "regex", Options: options}}
}

func noData(text, colour string) mapping {
	options := dashboard.DashboardSpecialValueMapOptions{Match: "null+nan", Result: result(text, colour)}
	return mapping{SpecialValueMap: &dashboard.SpecialValueMap{Type: "special", Options: options}}
}

// yesNo are the texts of 1 and 0, and of dated ones.
func yesNo(yes, no, noColour string) []mapping {
	return []mapping{value("1", yes, good), value("0", no, noColour), value("2", no, unknown), value("3", yes, unknown)}
}

var (
	stockTexts    = yesNo("In stock", "Sold out", bad)
	noAccountText = value("-2", "No account", warn)
	stockStates   = append([]mapping{noAccountText}, stockTexts...)
	successTexts  = yesNo("Working", "Failing", bad)
	// States as the provider reports them. Only operational is known to be good.
	componentStates = []mapping{words("/^operational$/i", "OK", good), words("/maintenance/i", "", plain), words(".+", "", bad)}
)

func set(id string, value any) property { return property{Id: id, Value: value} }

// overriding sets properties of the fields of a query, of a name, or of a pattern of names.
func overriding(matcher, of string, p ...property) override {
	return override{Matcher: dashboard.MatcherConfig{Id: matcher, Options: of}, Properties: append([]property{}, p...)}
}

const ofQuery, ofName, ofPattern = "byFrameRefID", "byName", "byRegexp"

// course is a range query, whose legend names its series.
func course(ref, legend, expr string) query {
	return query{Datasource: &datasource, RefId: &ref, LegendFormat: &legend, Expr: expr, Instant: new(false), Range: new(true)}
}

// rows is an instant query whose labels become fields.
func rows(ref, expr string) query {
	q := course(ref, "", expr)
	q.Instant, q.Range, q.Format = q.Range, q.Instant, new(prometheus.PromQueryFormatTable)
	return q
}

// panel has the options of all kinds of panels.
type panel struct {
	id                 uint32 // never changes, so that links to the panel keep working
	title, description string
	w, h               uint32
	unit               string
	decimals           *float64
	steps              *dashboard.ThresholdsConfig
	mappings           []mapping
	noValue            string // what the panel says if nothing is known
	links              []link
	overrides          []override

	lines, sparkline bool     // of numbers: each has a line of its own; its history is behind it
	field            string   // of numbers: a label to show instead of names and values
	sort             string   // of tables: names of columns, with - if descending
	hidden           []string // of tables: labels
	total            bool     // of tables: a last row with the sums
}

// configuring leads to the documentation of a setting.
func configuring(what, heading string) []link {
	return []link{{"How to configure " + what, documents + "docs/configuration.md#" + heading, true}}
}

// build returns the panel as one of a kind.
func (p panel) build(kind string, options, custom any, scheme dashboard.FieldColorModeId, queries []query) dashboard.Panel {
	out := dashboard.Panel{
		Type: kind, Id: &p.id, Title: &p.title, Description: &p.description, PluginVersion: new(pluginVersion), Datasource: &datasource,
		GridPos: &dashboard.GridPos{W: p.w, H: p.h}, Options: options,
		FieldConfig: &dashboard.FieldConfigSource{Overrides: append([]override{}, p.overrides...), Defaults: dashboard.FieldConfig{
			Unit: new(cmp.Or(p.unit, "none")), Decimals: p.decimals, Mappings: p.mappings, NoValue: &p.noValue,
			Custom: custom, Thresholds: cmp.Or(p.steps, rising(none)), Color: &dashboard.FieldColor{Mode: scheme},
		}},
	}
	for _, l := range p.links {
		out.Links = append(out.Links, dashboard.DashboardLink{
			Title: l.Title, Type: dashboard.DashboardLinkTypeLink, Url: &l.URL, Tags: []string{}, TargetBlank: l.TargetBlank,
		})
	}
	for _, q := range queries {
		out.Targets = append(out.Targets, q)
	}
	return out
}

// number shows one or a few large numbers.
func (p panel) number(description string, lines ...column) dashboard.Panel {
	p.description, p.noValue = description, cmp.Or(p.noValue, "No current data")
	var queries []query
	for _, l := range lines {
		q := rows(l.ref, l.expr)
		if p.field == "" { // its legend is the name
			q.LegendFormat, q.Format = &l.name, nil
		}
		if p.sparkline {
			q.Instant, q.Range = q.Range, q.Instant
		}
		queries = append(queries, q)
		p.overrides = append(p.overrides, overriding(ofQuery, l.ref, l.properties...))
	}
	p.mappings = append(p.mappings, noData(p.noValue, unknown))
	o := stat.NewOptions()
	o.GraphMode, o.ColorMode, o.TextMode, o.Orientation = "none", "background_solid", "value_and_name", "auto"
	o.ReduceOptions = common.ReduceDataOptions{Calcs: []string{"lastNotNull"}, Fields: new("")}
	o.Text = &common.VizTextDisplayOptions{TitleSize: new(14.0)} // by default tiny in low panels
	if p.field != "" {
		o.ReduceOptions.Fields, o.TextMode = new("/^"+p.field+"$/"), "value"
	}
	if p.sparkline { // has the colour
		o.GraphMode, o.ColorMode, p.steps = "area", "none", rising(plain)
	}
	if o.WideLayout = p.lines; p.lines {
		o.Orientation = "horizontal"
	}
	return p.build("stat", o, nil, "thresholds", queries)
}

var legend = common.VizLegendOptions{DisplayMode: "list", Placement: "bottom", ShowLegend: true, Calcs: []string{}}

// timeline shows a coloured band for each series. Value mappings have to cover all values: the
// legend lists their texts, which thresholds would replace.
func (p panel) timeline(description string, queries ...query) dashboard.Panel {
	p.description = description
	o := statetimeline.Options{
		ShowValue: "never", RowHeight: 0.8, MergeValues: new(true), AlignValue: new(common.TimelineValueAlignmentLeft),
		Legend: legend, Tooltip: common.VizTooltipOptions{Mode: "single", Sort: "none"},
	}
	c := statetimeline.FieldConfig{LineWidth: new(uint32(0)), FillOpacity: new(uint32(75))}
	out := p.build("state-timeline", o, c, "palette-classic", queries)
	out.FieldConfig.Defaults.NoValue = nil // would be in the legend, for gaps
	out.Interval = new("5m")               // contains two scrapes, and a sample of the demo's history
	// Drops the response of a query without series, which is an error in this panel.
	out.Transformations = []transformation{{Id: "filterFieldsByName", Options: object{"include": object{"pattern": "/.*/"}}}}
	return out
}
