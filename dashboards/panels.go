package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Aliases of the SDK's types that every panel uses.
type (
	query          = prometheus.Dataquery
	property       = dashboard.DynamicConfigValue
	mapping        = dashboard.ValueMapping
	step           = dashboard.Threshold
	override       = dashboard.DashboardFieldConfigSourceOverrides
	transformation = dashboard.DataTransformerConfig
	object         = map[string]any // options for which the SDK has no type
)

const (
	documents = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/"
	runbooks  = documents + "alerts/README.md#"
)

// orNil returns a pointer to a value, or nil to none.
func orNil[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// datasource is the one that the user chooses.
var datasource = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// One palette: red says bad and green good. Grey is what is not known. Lines have the colours of Grafana's palette.
const (
	good, warn, bad, gone = "green", "orange", "red", "dark-red"
	plain, muted, unknown = "blue", "text", "#808080"
	dark                  = "#5a5a62" // of a background that says nothing
)

// solid returns options with fixed, darker colours, for backgrounds: Grafana's white text on them has a contrast of at least 4.5.
func solid[T any](options T) T {
	text, _ := json.Marshal(options)
	for colour, darker := range map[string]string{good: "#1a7f37", warn: "#a85000", bad: "#c4162a", gone: "#c4162a", plain: "#1f60c4", unknown: "#6e6e6e"} {
		text = bytes.ReplaceAll(text, []byte(`"color":"`+colour+`"`), []byte(`"color":"`+darker+`"`))
	}
	var out T
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

// Units that show the whole value, and its sign first: Grafana's own abbreviate thousands or change to minutes and weeks.
const (
	usd, percent, span, duration = "suffix:USD", "percentunit", "s", "dtdurations"
	ago, date                    = "dateTimeFromNow", "time:YYYY-MM-DD" // of milliseconds
	endless                      = 1e18                                 // ends a range: Grafana 11 matches none without an end
)

// from is a threshold; rising are thresholds in ascending order, of which the first colour applies below all others.
func from(value float64, colour string) step { return step{Value: &value, Color: colour} }

func rising(first string, more ...step) *dashboard.ThresholdsConfig {
	return &dashboard.ThresholdsConfig{Mode: "absolute", Steps: append([]step{{Color: first}}, more...)}
}

// Of a balance, and of what is missing.
var balanceSteps, missingSteps = rising(bad, from(0, plain)), rising(good, from(0.005, bad))

// result is what a mapping shows; an empty text leaves the value's own.
func result(text, colour string) dashboard.ValueMappingResult {
	return dashboard.ValueMappingResult{Text: orNil(text), Color: &colour}
}

// value maps one value, between a range, words texts that match a pattern, and noData what is not known.
func value(of, text, colour string) mapping {
	return mapping{ValueMap: &dashboard.ValueMap{Type: "value", Options: map[string]dashboard.ValueMappingResult{of: result(text, colour)}}}
}

func between(from, to float64, text, colour string) mapping {
	return mapping{RangeMap: &dashboard.RangeMap{Type: "range", Options: dashboard.DashboardRangeMapOptions{From: &from, To: &to, Result: result(text, colour)}}}
}

func words(pattern, text, colour string) mapping {
	return mapping{RegexMap: &dashboard.RegexMap{Type: "regex", Options: dashboard.DashboardRegexMapOptions{Pattern: pattern, Result: result(text, colour)}}}
}

func noData(text string) mapping {
	return mapping{SpecialValueMap: &dashboard.SpecialValueMap{Type: "special", Options: dashboard.DashboardSpecialValueMapOptions{Match: "null+nan", Result: result(text, unknown)}}}
}

func yesNo(yes, no, noColour string) []mapping {
	return []mapping{value("1", yes, good), value("0", no, noColour)}
}

var (
	stockTexts    = yesNo("In stock", "Sold out", gone)
	noAccountText = value("-2", "No account", warn)
	stockStates   = append([]mapping{value("2", "Sold out", unknown), value("3", "In stock", unknown), noAccountText}, stockTexts...) // grey is old
	successTexts  = yesNo("Working", "Failing", bad)
	// States as the provider reports them. Only operational is known to be good.
	componentStates = []mapping{words("/^operational$/i", "OK", good), words("/maintenance/i", "", plain), words(".+", "", bad)}
)

func set(id string, value any) property               { return property{Id: id, Value: value} }
func setSteps(s *dashboard.ThresholdsConfig) property { return set("thresholds", s) }

// ofQuery, ofName and ofPattern override properties of the fields of a query, of a name, and of a pattern of names.
func ofQuery(ref string, p ...property) override       { return overriding("byFrameRefID", ref, p) }
func ofName(name string, p ...property) override       { return overriding("byName", name, p) }
func ofPattern(pattern string, p ...property) override { return overriding("byRegexp", pattern, p) }
func overriding(matcher, of string, p []property) override {
	return override{Matcher: dashboard.MatcherConfig{Id: matcher, Options: of}, Properties: p}
}

// now is an instant query, whose legend names its series.
func now(ref, legend, expr string) query {
	return query{Datasource: &datasource, RefId: &ref, LegendFormat: &legend, Expr: expr, Instant: new(true), Range: new(false)}
}

// rows is an instant query whose labels become fields.
func rows(ref, expr string) query {
	q := now(ref, "", expr)
	q.Format = new(prometheus.PromQueryFormatTable)
	return q
}

// course is a range query.
func course(ref, legend, expr string) query {
	q := now(ref, legend, expr)
	q.Instant, q.Range = q.Range, q.Instant
	return q
}

// panel has the options of all kinds of panels.
type panel struct {
	id                 uint32 // never changes, so that links to the panel keep working
	title, description string
	w, h               uint32
	unit               string
	decimals, min      *float64
	steps              *dashboard.ThresholdsConfig
	mappings           []mapping
	noValue            string // what the panel says if nothing is known
	alerts             string // whose runbooks are linked, without the prefix
	links              []dashboard.DashboardLink
	overrides          []override

	lines, background, sparkline bool     // of numbers: each has a line of its own; the background has the colour; its history is behind it
	field                        string   // of numbers: a label to show instead of names and values
	interval                     string   // of charts: the shortest between two points
	sort                         string   // of tables: names of columns, with - if descending
	hidden                       []string // of tables: labels
	total                        bool     // of tables: a last row with the sums
}

func panelLink(l link) dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: l.Title, Type: dashboard.DashboardLinkTypeLink, Url: &l.URL, Tags: []string{}, TargetBlank: l.TargetBlank}
}

// build returns the panel as one of a kind.
func (p panel) build(kind string, options, custom any, scheme dashboard.FieldColorModeId, queries []query) dashboard.Panel {
	if p.steps == nil {
		p.steps = rising(plain)
	}
	out := dashboard.Panel{
		Type: kind, Id: &p.id, Title: &p.title, Description: &p.description, PluginVersion: new(pluginVersion), Datasource: &datasource,
		GridPos: &dashboard.GridPos{W: p.w, H: p.h}, Interval: orNil(p.interval), Options: options,
		FieldConfig: &dashboard.FieldConfigSource{Overrides: append([]override{}, p.overrides...), Defaults: dashboard.FieldConfig{
			Unit: new(cmp.Or(p.unit, "none")), Decimals: p.decimals, Min: p.min, Mappings: p.mappings, NoValue: orNil(p.noValue),
			Custom: custom, Thresholds: p.steps, Color: &dashboard.FieldColor{Mode: scheme},
		}},
	}
	for alert := range strings.FieldsSeq(p.alerts) {
		out.Links = append(out.Links, panelLink(link{"Runbook: ServerRental" + alert, runbooks + strings.ToLower("ServerRental"+alert), true}))
	}
	out.Links = append(out.Links, p.links...)
	for _, q := range queries {
		out.Targets = append(out.Targets, q)
	}
	return out
}

// number shows one or a few large numbers.
func (p panel) number(description string, queries ...query) dashboard.Panel {
	p.description = description
	p.mappings = append(p.mappings, noData(cmp.Or(p.noValue, "No current data")))
	o := stat.Options{
		GraphMode: "none", ColorMode: "value", TextMode: "value_and_name", JustifyMode: "auto", Orientation: "auto", PercentChangeColorMode: "standard",
		ReduceOptions: common.ReduceDataOptions{Calcs: []string{"lastNotNull"}, Fields: new(""), Values: new(false)},
		Text:          &common.VizTextDisplayOptions{TitleSize: new(14.0)}, // by default tiny in low panels
	}
	if p.field != "" {
		o.ReduceOptions.Fields, o.TextMode = new("/^"+p.field+"$/"), "value"
	}
	if p.background {
		o.ColorMode = "background_solid"
		p.mappings, p.steps, p.overrides = solid(p.mappings), solid(cmp.Or(p.steps, rising(plain))), solid(p.overrides)
	}
	if p.sparkline {
		o.GraphMode = "area"
	}
	if p.lines {
		o.Orientation, o.WideLayout = "horizontal", true
	}
	return p.build("stat", o, nil, "thresholds", queries)
}

var legend = common.VizLegendOptions{DisplayMode: "list", Placement: "bottom", ShowLegend: true, Calcs: []string{}}

// chart shows lines over time.
func (p panel) chart(description string, queries ...query) dashboard.Panel {
	p.description, p.noValue = description, cmp.Or(p.noValue, "Nothing in this time range")
	c := common.GraphFieldConfig{
		DrawStyle: new(common.GraphDrawStyleLine), LineWidth: new(2.0), LineInterpolation: new(common.LineInterpolationStepAfter),
		ShowPoints: new(common.VisibilityModeNever),
	}
	return p.build("timeseries", timeseries.Options{Legend: legend, Tooltip: common.VizTooltipOptions{Mode: "multi", Sort: "desc"}}, c, "palette-classic", queries)
}

// timeline shows a coloured band for each series. Value mappings have to cover all values: the
// legend lists their texts, which thresholds would replace.
func (p panel) timeline(description string, queries ...query) dashboard.Panel {
	p.description = description
	p.interval = "5m" // contains two scrapes, and a sample of the demo's history
	o := statetimeline.Options{
		ShowValue: "never", RowHeight: 0.8, MergeValues: new(true), AlignValue: new(common.TimelineValueAlignmentLeft),
		Legend: legend, Tooltip: common.VizTooltipOptions{Mode: "single", Sort: "none"},
	}
	out := p.build("state-timeline", o, statetimeline.FieldConfig{LineWidth: new(uint32(0)), FillOpacity: new(uint32(75))}, "palette-classic", queries)
	// Drops the response of a query without series, which is an error in this panel.
	out.Transformations = []transformation{{Id: "filterFieldsByName", Options: object{"include": object{"pattern": "/.*/"}}}}
	return out
}
