package main

import (
	"cmp"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// column is a column of a table: its source and its format.
type column struct {
	label, ref string // whose values it shows: a label, or a query
	expr       string // of the query, if it is for this column
	name       string
	properties []property
	mappings   []mapping
	background bool // coloured instead of the text
	sorts      bool // the rows
}

// with returns the column with more properties.
func (c column) with(p ...property) column {
	c.properties = slices.Concat(c.properties, p)
	return c
}

// filled colours the background instead of the text, which is centred.
func (c column) filled() column {
	c.background = true
	return c.with(set("custom.align", "center"))
}

// from returns the column with the query that has its label.
func (c column) from(expr string) column {
	c.expr = expr
	return c
}

func (c column) linked(l link) column        { return c.with(set("links", []link{l})) }
func (c column) colours(steps []step) column { return c.with(setSteps(steps)).mapped() }
func (c column) decimals(n int) column       { return c.with(set("decimals", n)) }
func (c column) unit(unit string) column     { return c.with(set("unit", unit)) }

// mapped colours the column's values.
func (c column) mapped(m ...mapping) column {
	c.mappings = append(m, noData("–"))
	return c
}

// fixed is a label as a column of a width.
func fixed(label, name string, width int) column {
	return column{label: label, name: name}.with(set("custom.width", width))
}

// flexible is a label as a column whose width depends on the window.
func flexible(label, name string, minWidth int) column {
	return column{label: label, name: name}.with(set("custom.minWidth", minWidth))
}

// address is a label with an address: a cell whose text is the name of the column opens it.
func address(label, name, expr string) column {
	return fixed(label, name, 60).from(expr).mapped(words(".+", name, plain)).linked(link{name, "${__value.raw}", true})
}

// number is the value of a query as a column.
func number(ref, name string, width int, expr string) column {
	return column{ref: ref, name: name, expr: expr}.with(set("custom.width", width))
}

// state is a value that is mapped to a text on a background.
func state(ref, name string, width int, expr string, texts []mapping) column {
	return number(ref, name, width, expr).mapped(texts...).filled()
}

// when is a timestamp in seconds in one of Grafana's units of dates, which are of milliseconds.
func when(ref, name string, width int, expr, unit string) column {
	return number(ref, name, width, "1000 * "+expr).unit(unit)
}

// looks returns what the column overrides.
func (c column) looks() []property {
	p := c.properties
	if c.mappings != nil {
		cell := object{"type": "color-text"}
		if c.background {
			cell = object{"type": "color-background", "mode": "basic"}
		}
		p = append(p, set("mappings", c.mappings), set("custom.cellOptions", cell))
	}
	return p
}

// link is one of a cell.
type link struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	TargetBlank bool   `json:"targetBlank"`
}

// ascending lists the rows by the column's value in ascending order, those without it last: Grafana
// keeps the order of the first query, and would itself put what is not known first.
func (c column) ascending() column {
	c.expr, c.sorts = "sort("+c.expr+")", true
	return c
}

// rank orders queries: the one that sorts, then those with labels for columns, so that two exporters
// which differ in one give two rows.
func (c column) rank() int {
	switch {
	case c.sorts:
		return 0
	case c.ref == "":
		return 1
	}
	return 2
}

func organize(names map[string]string, hidden map[string]bool, order map[string]int) transformation {
	return transformation{Id: "organize", Options: object{"renameByName": names, "excludeByName": hidden, "indexByName": order}}
}

// table shows one row for each set of labels. Grafana merges the rows of all queries that have the
// same labels, so that all must have those of a row, and one may have more for columns.
func (p panel) table(columns ...column) dashboard.Panel {
	var queries []query
	inOrder := slices.SortedStableFunc(slices.Values(columns), func(a, b column) int { return cmp.Compare(a.rank(), b.rank()) })
	for _, c := range inOrder {
		if c.expr != "" {
			queries = append(queries, rows(cmp.Or(c.ref, c.label), c.expr))
		}
	}
	valueOf := func(ref string) string { // Grafana names a value after its query, unless there is only one
		if len(queries) == 1 {
			return "Value"
		}
		return "Value #" + ref
	}
	hidden := map[string]bool{"Time": true}
	for _, q := range queries {
		hidden[valueOf(*q.RefId)] = true
	}
	for _, l := range p.hidden {
		hidden[l] = true
	}
	names, order := map[string]string{}, map[string]int{}
	for i, c := range columns {
		field := c.label
		if c.ref != "" {
			field = valueOf(c.ref)
		}
		names[field], order[field] = c.name, i
		delete(hidden, field)
		p.overrides = append(p.overrides, forName(c.name, c.looks()...))
	}
	p.overrides = append([]override{forPattern("/.*/", set("noValue", "–"))}, p.overrides...)
	o := table.Options{ShowHeader: true, CellHeight: new(common.TableCellHeightSm)}
	if p.sort != "" {
		o.SortBy = []common.TableSortByFieldState{{DisplayName: p.sort, Desc: &p.descending}}
	}
	out := p.build("table", o, common.TableFieldOptions{MinWidth: new(60.0), Align: common.FieldTextAlignmentAuto}, dashboard.FieldColorModeIdThresholds, queries)
	if len(queries) > 1 {
		out.Transformations = []transformation{{Id: "merge", Options: object{}}}
	}
	out.Transformations = append(out.Transformations, organize(names, hidden, order))
	return out
}
