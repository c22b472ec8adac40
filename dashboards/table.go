package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// column is a column of a table, or a line of numbers: its source and its format.
type column struct {
	label, ref string // whose values it shows: a label, or a query
	expr       string // of the query, if it is for this column
	name       string
	properties []property
	coloured   bool // by these
	sorts      bool // the rows
}

func line(ref, name, expr string) column { return column{ref: ref, name: name, expr: expr} }

// link is one of a cell.
type link struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	TargetBlank bool   `json:"targetBlank"`
}

// fixed is a label as a column of a width; flexible is one whose width depends on the window.
func fixed(label, name string, width int) column {
	return column{label: label, name: name}.with("custom.width", width)
}

func flexible(label, name string, minWidth int) column {
	return column{label: label, name: name}.with("custom.minWidth", minWidth)
}

// address is a label with an address: a cell whose text is the name of the column opens it.
func address(label, name, expr string) column {
	return fixed(label, name, 60).from(expr).mapped(words(".+", name, plain)).centred().linked(link{name, "${__value.raw}", true})
}

// number is the value of a query as a column. state is one that is mapped to a text on a background, and money an amount of
// US dollars, which the title says: Grafana 13 cuts a number that is too wide on the left.
func number(ref, name string, width int, expr string) column {
	return line(ref, name, expr).with("custom.width", width)
}

func state(ref, name string, width int, expr string, texts []mapping) column {
	return number(ref, name, width, expr).mapped(texts...).centred()
}

func money(ref, name, expr string) column {
	return line(ref, name, expr).with("custom.minWidth", 90).decimals(2)
}

func (c column) with(id string, value any) column {
	c.properties = append(slices.Clip(c.properties), set(id, value))
	return c
}
func (c column) unit(unit string) column { return c.with("unit", unit) }
func (c column) decimals(n int) column   { return c.with("decimals", n) }
func (c column) linked(l link) column    { return c.with("links", []link{l}) }
func (c column) centred() column         { return c.with("custom.align", "center") }

func (c column) colours(first string, more ...step) column {
	return c.with("thresholds", rising(first, more...)).mapped()
}

func (c column) mapped(m ...mapping) column {
	c.coloured = true
	return c.with("mappings", append(m, noData("–", none)))
}

// filled is a property: cells with the colours of their values.
var filled = set("custom.cellOptions", object{"type": "color-background", "mode": "basic"})

// from sets the query that has the column's label.
func (c column) from(expr string) column { c.expr = expr; return c }

// ascending lists the rows by the column's value, those without it last: Grafana keeps the order of
// the first query, and would itself put what is not known first.
func (c column) ascending() column {
	c.expr, c.sorts = "sort("+c.expr+")", true
	return c
}

// table shows one row for each set of labels. Grafana merges the rows of all queries that have the
// same labels, so that all must have those of a row, and one may have more for columns.
func (p panel) table(description string, columns ...column) dashboard.Panel {
	p.description, p.noValue = description, "None is known"
	var queries []query
	for _, c := range columns {
		switch q := rows(cmp.Or(c.ref, c.label), c.expr); {
		case c.sorts:
			queries = slices.Insert(queries, 0, q)
		case c.expr != "":
			queries = append(queries, q)
		}
	}
	valueOf := func(ref string) string { // Grafana names a value after its query, unless there is only one
		if len(queries) == 1 {
			return "Value"
		}
		return "Value #" + ref
	}
	names, hidden, order := map[string]string{}, map[string]bool{"Time": true}, map[string]int{}
	for _, q := range queries {
		hidden[valueOf(*q.RefId)] = true
	}
	for _, l := range p.hidden {
		hidden[l] = true
	}
	p.overrides = append([]override{overriding(ofPattern, "/.*/", set("noValue", "–"))}, p.overrides...)
	for i, c := range columns {
		field := c.label
		if c.ref != "" {
			field = valueOf(c.ref)
		}
		names[field], order[field] = c.name, i
		delete(hidden, field)
		if c.coloured {
			c.properties = append(c.properties, filled)
		}
		p.overrides = append(p.overrides, overriding(ofName, c.name, c.properties...))
	}
	o := table.Options{ShowHeader: true, CellHeight: new(common.TableCellHeightSm)}
	if p.total {
		o.Footer = &common.TableFooterOptions{Show: true, Reducer: []string{"sum"}}
	}
	for _, name := range strings.FieldsFunc(p.sort, func(r rune) bool { return r == ',' }) {
		name, descending := strings.CutPrefix(name, "-")
		o.SortBy = append(o.SortBy, common.TableSortByFieldState{DisplayName: name, Desc: &descending})
	}
	out := p.build("table", o, common.TableFieldOptions{MinWidth: new(60.0), Align: "auto"}, "thresholds", queries)
	if len(queries) > 1 {
		out.Transformations = []transformation{
			{Id: "merge", Options: object{}},
			// One table, because all rows have the same time, or none instead of the header of an empty one.
			{Id: "partitionByValues", Options: object{"fields": []string{"Time"}, "naming": object{"asLabels": false}}},
		}
	}
	organize := object{"renameByName": names, "excludeByName": hidden, "indexByName": order}
	out.Transformations = append(out.Transformations, transformation{Id: "organize", Options: organize})
	return out
}
