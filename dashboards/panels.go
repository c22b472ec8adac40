package main

import (
	"cmp"
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
	query    = prometheus.Dataquery
	property = dashboard.DynamicConfigValue
	mapping  = dashboard.ValueMapping
	step     = dashboard.Threshold
	override = dashboard.DashboardFieldConfigSourceOverrides

	transformation = dashboard.DataTransformerConfig
	object         = map[string]any // options for which the SDK has no type
)

const runbooks = "https://github.com/server-rental-exporter/server_rental_exporter/blob/main/alerts/README.md"

// datasource is the one that the user chooses.
var datasource = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// One palette: red says bad and green good. Grey is what is not known. Lines have the colours of
// Grafana's palette.
const (
	good    = "green"
	warn    = "orange"
	bad     = "red"
	plain   = "blue"
	muted   = "text"
	gone    = "dark-red"
	unknown = "#808080"
)

// Units that show the whole value, and its sign first: Grafana's own abbreviate thousands or change
// to minutes and weeks.
const (
	usd      = "suffix:USD"
	duration = "dtdurations"
	date     = "time:YYYY-MM-DD"
	minute   = "time:YYYY-MM-DD HH:mm"
	ago      = "dateTimeFromNow"
	hours    = "suffix: h"
	percent  = "percentunit"
)

// from is a threshold.
func from(value float64, colour string) step { return step{Value: &value, Color: colour} }

// rising returns thresholds in ascending order. The first colour applies below all others.
func rising(first string, more ...step) []step { return append([]step{{Color: first}}, more...) }

var (
	allMuted   = rising(muted)
	noneIsGood = rising(good, from(1, bad))
	noneIsBad  = rising(bad, from(1, good))
	// As the alerts of balances and renewals: of a balance, of its share of the monthly cost, and of days.
	balanceSteps = rising(bad, from(0, plain))
	monthSteps   = rising(bad, from(0, warn), from(0.1, good))
	daySteps     = rising(bad, from(2, warn), from(7, good))
	// Of the age of data in intervals of its collector, of which one is normal.
	intervalSteps = rising(good, from(3, warn), from(10, bad))
)

func result(text, colour string) dashboard.ValueMappingResult {
	r := dashboard.ValueMappingResult{Color: &colour}
	if text != "" {
		r.Text = &text
	}
	return r
}

// value maps one value to a text.
func value(of, text, colour string) mapping {
	return mapping{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{of: result(text, colour)}}}
}

// between maps a range of values. Grafana 11 matches no range without an end.
func between(from, to float64, text, colour string) mapping {
	return mapping{RangeMap: &dashboard.RangeMap{Type: dashboard.MappingTypeRangeToText, Options: dashboard.DashboardRangeMapOptions{From: &from, To: &to, Result: result(text, colour)}}}
}

const endless = 1e18

// words maps texts that match a pattern; an empty text leaves them as they are.
func words(pattern, text, colour string) mapping {
	return mapping{RegexMap: &dashboard.RegexMap{Type: dashboard.MappingTypeRegexToText, Options: dashboard.DashboardRegexMapOptions{Pattern: pattern, Result: result(text, colour)}}}
}

// noData shows missing data, which is neither good nor bad.
func noData(text string) mapping {
	return mapping{SpecialValueMap: &dashboard.SpecialValueMap{Type: dashboard.MappingTypeSpecialValue, Options: dashboard.DashboardSpecialValueMapOptions{Match: dashboard.SpecialValueMatchNullAndNan, Result: result(text, unknown)}}}
}

// yesNo maps 1 and 0.
func yesNo(yes, yesColour, no, noColour string) []mapping {
	return []mapping{value("1", yes, yesColour), value("0", no, noColour)}
}

var (
	stockTexts   = yesNo("In stock", good, "Sold out", gone)
	successTexts = yesNo("Working", good, "Failing", bad)
	// States as the provider reports them. Only operational is known to be good.
	componentStates = []mapping{words("/^operational$/i", "OK", good), words("/maintenance/i", "", plain), words(".+", "", bad)}
	serverStates    = []mapping{words("/^active$/i", "", good), words("/^suspended$/i", "", bad), words(".+", "", warn)}
)

// Overrides for the fields of a query, of a name, and of a pattern of names.
func forQuery(ref string, p ...property) override {
	return override{Matcher: dashboard.MatcherConfig{Id: "byFrameRefID", Options: ref}, Properties: p}
}

func forName(name string, p ...property) override {
	return override{Matcher: dashboard.MatcherConfig{Id: "byName", Options: name}, Properties: p}
}

func forPattern(pattern string, p ...property) override {
	return override{Matcher: dashboard.MatcherConfig{Id: "byRegexp", Options: pattern}, Properties: p}
}

func set(id string, value any) property { return property{Id: id, Value: value} }

func absolute(steps []step) *dashboard.ThresholdsConfig {
	return &dashboard.ThresholdsConfig{Mode: dashboard.ThresholdsModeAbsolute, Steps: steps}
}

func setSteps(steps []step) property { return set("thresholds", absolute(steps)) }

func setColour(colour string) property {
	return set("color", dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: &colour})
}

// now is an instant query; its legend names its series.
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
	id          uint32 // never changes, so that links to the panel keep working
	title       string
	description string
	w, h        uint32
	unit        string
	decimals    *float64
	min         *float64
	steps       []step
	mappings    []mapping
	noValue     string   // what the panel says if nothing is known
	alerts      []string // whose runbooks are linked, without the prefix
	links       []dashboard.DashboardLink
	overrides   []override

	// Of single numbers.
	names      bool   // are shown with the values
	lines      bool   // one below the other, names beside them
	background bool   // coloured instead of the value
	field      string // a label to show instead of the value

	// Of charts.
	stepped, bars, areas bool
	softMax              *float64
	calcs                []string
	interval             string  // the shortest between two points
	points               float64 // at most
	spanNulls            float64 // milliseconds; longer gaps are shown

	// Of tables.
	sort       string // name of a column
	descending bool
	hidden     []string // labels
}

func panelLink(title, url string, newTab bool) dashboard.DashboardLink {
	return dashboard.DashboardLink{Title: title, Type: dashboard.DashboardLinkTypeLink, Url: &url, Tags: []string{}, TargetBlank: newTab}
}

// build returns the panel as one of a kind.
func (p panel) build(kind string, options, custom any, scheme dashboard.FieldColorModeId, queries []query) dashboard.Panel {
	if p.steps == nil {
		p.steps = rising(plain)
	}
	out := dashboard.NewPanel()
	out.Type, out.Id, out.Title, out.Description, out.Options = kind, &p.id, &p.title, &p.description, options
	out.PluginVersion, out.Datasource = new(pluginVersion), &datasource
	out.GridPos = &dashboard.GridPos{W: p.w, H: p.h}
	for _, alert := range p.alerts {
		name := "ServerRental" + alert
		out.Links = append(out.Links, panelLink("Runbook: "+name, runbooks+"#"+strings.ToLower(name), true))
	}
	out.Links = append(out.Links, p.links...)
	for _, q := range queries {
		out.Targets = append(out.Targets, q)
	}
	if p.interval != "" {
		out.Interval = &p.interval
	}
	if p.points > 0 {
		out.MaxDataPoints = &p.points
	}
	out.FieldConfig = &dashboard.FieldConfigSource{Overrides: append([]override{}, p.overrides...), Defaults: dashboard.FieldConfig{
		Unit: new(cmp.Or(p.unit, "none")), Decimals: p.decimals, Min: p.min, Mappings: p.mappings, Custom: custom,
		Thresholds: absolute(p.steps), Color: &dashboard.FieldColor{Mode: scheme},
	}}
	if p.noValue != "" {
		out.FieldConfig.Defaults.NoValue = &p.noValue
	}
	return *out
}

// number shows one or a few large numbers.
func (p panel) number(queries ...query) dashboard.Panel {
	p.mappings = append(p.mappings, noData(cmp.Or(p.noValue, "No data")))
	o := stat.NewOptions()
	o.GraphMode, o.ColorMode, o.WideLayout, o.Orientation = common.BigValueGraphModeNone, common.BigValueColorModeValue, false, common.VizOrientationAuto
	o.ReduceOptions = common.ReduceDataOptions{Calcs: []string{"lastNotNull"}, Fields: new(""), Values: new(false)}
	o.Text = &common.VizTextDisplayOptions{TitleSize: new(14.0)} // by default tiny in low panels
	if p.lines {
		o.Orientation, o.WideLayout = common.VizOrientationHorizontal, true
	}
	if p.field != "" {
		o.ReduceOptions.Fields = new("/^" + p.field + "$/")
	}
	if p.background {
		o.ColorMode = common.BigValueColorModeBackground
	}
	if p.names {
		o.TextMode = common.BigValueTextModeValueAndName
	}
	return p.build("stat", o, nil, dashboard.FieldColorModeIdThresholds, queries)
}

func (p panel) legend() common.VizLegendOptions {
	l := common.VizLegendOptions{DisplayMode: common.LegendDisplayModeList, Placement: common.LegendPlacementBottom, ShowLegend: true, Calcs: append([]string{}, p.calcs...)}
	if len(p.calcs) > 0 {
		l.DisplayMode = common.LegendDisplayModeTable
	}
	return l
}

// chart shows lines over time, or what is stacked: areas, or bars that begin at the time of their value.
func (p panel) chart(queries ...query) dashboard.Panel {
	c := common.GraphFieldConfig{
		DrawStyle: new(common.GraphDrawStyleLine), LineWidth: new(2.0), FillOpacity: new(0.0),
		LineInterpolation: new(common.LineInterpolationLinear), ShowPoints: new(common.VisibilityModeNever), AxisSoftMax: p.softMax,
	}
	switch {
	case p.bars:
		c.DrawStyle, c.LineWidth, c.FillOpacity = new(common.GraphDrawStyleBars), new(0.0), new(70.0)
	case p.areas:
		c.FillOpacity = new(30.0)
	case p.stepped:
		c.LineInterpolation = new(common.LineInterpolationStepAfter)
	}
	if p.bars || p.areas {
		c.Stacking, c.BarAlignment = &common.StackingConfig{Mode: new(common.StackingModeNormal), Group: new("A")}, new(common.BarAlignmentAfter)
	}
	if p.spanNulls > 0 {
		c.SpanNulls = &common.BoolOrFloat64{Float64: &p.spanNulls}
	}
	o := timeseries.Options{Legend: p.legend(), Tooltip: common.VizTooltipOptions{Mode: common.TooltipDisplayModeMulti, Sort: common.SortOrderDescending}}
	return p.build("timeseries", o, c, dashboard.FieldColorModeIdPaletteClassic, queries)
}

// timeline shows a coloured band for each series. Value mappings have to cover all values: the
// legend lists their texts, which thresholds would replace.
func (p panel) timeline(queries ...query) dashboard.Panel {
	p.interval = "2m" // contains two scrapes
	o := statetimeline.Options{
		ShowValue: common.VisibilityModeNever, RowHeight: 0.8, MergeValues: new(true), AlignValue: new(common.TimelineValueAlignmentLeft),
		Legend: p.legend(), Tooltip: common.VizTooltipOptions{Mode: common.TooltipDisplayModeSingle, Sort: common.SortOrderNone},
	}
	out := p.build("state-timeline", o, statetimeline.FieldConfig{LineWidth: new(uint32(0)), FillOpacity: new(uint32(75))}, dashboard.FieldColorModeIdPaletteClassic, queries)
	// Drops the response of a query without series, which is an error in this panel.
	out.Transformations = []transformation{{Id: "filterFieldsByName", Options: object{"include": object{"pattern": "/.*/"}}}}
	return out
}
