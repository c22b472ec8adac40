package collector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestStockHistory has a response each minute in which a plan is in stock or not (yes,
// no), does not say so (null) or is not listed (-). It compares restocks, sellouts, and
// the numbers of the responses in which the plan was first seen, last in stock, and
// changed.
func TestStockHistory(t *testing.T) {
	known := map[string]*bool{"yes": ptr(true), "no": ptr(false), "null": nil}
	for stocks, want := range map[string]string{
		"yes yes":              "0 0 #0 #0 -; 0 0 #0 #1 -",
		"no no":                "0 0 #0 - -; 0 0 #0 - -",
		"yes no no yes no":     "0 0 #0 #0 -; 0 1 #0 #0 #1; 0 1 #0 #0 #1; 1 1 #0 #3 #3; 1 2 #0 #3 #4",
		"no yes no":            "0 0 #0 - -; 1 0 #0 #1 #1; 1 1 #0 #1 #2",
		"yes - yes":            "0 0 #0 #0 -; -; 0 0 #0 #2 -",
		"yes - - no":           "0 0 #0 #0 -; -; -; 0 1 #0 #0 #3",
		"no - yes":             "0 0 #0 - -; -; 1 0 #0 #2 #2",
		"yes null no null yes": "0 0 #0 #0 -; 0 0 #0 #0 -; 0 1 #0 #0 #2; 0 1 #0 #0 #2; 1 1 #0 #4 #4",
		"null yes no":          "-; 0 0 #1 #1 -; 0 1 #1 #1 #2",
		"- no yes":             "-; 0 0 #1 - -; 1 0 #1 #2 #2",
	} {
		history := stockHistory{}
		var got []string
		for i, stock := range strings.Fields(stocks) {
			b := &metric.Builder{}
			if stock != "-" {
				s := Snapshot{items: []item{{id: "p", stock: known[stock]}}, response: rentalapi.Response{Received: today.Add(time.Duration(i) * time.Minute)}}
				planStock.apply(b, &s, history)
				history = s.stock
			}
			got = append(got, stockValues(t, b))
		}
		simtest.AssertEqual(t, stocks, strings.Join(got, "; "), want)
	}
}

// TestSoldOut waits for the restock of an item while it is not known whether it is in stock.
func TestSoldOut(t *testing.T) {
	history, got := stockHistory{}, []bool{}
	for _, stock := range []*bool{nil, ptr(true), nil, ptr(false), nil, ptr(true)} {
		s := Snapshot{items: []item{{id: "c", stock: stock}, {id: "other", stock: ptr(true)}}}
		configurationStock.apply(&metric.Builder{ConstLabelValues: []string{"main"}}, &s, history)
		history = s.stock
		got = append(got, s.SoldOut)
	}
	simtest.AssertEqual(t, "sold out", got, []bool{false, false, false, true, true, false})
}

// stockValues returns the values of the only plan; - without any.
func stockValues(t *testing.T, b *metric.Builder) string {
	t.Helper()
	values := exposed(t, Snapshot{Metrics: b.Metrics()})
	if len(values) == 0 {
		return "-"
	}
	minute := func(at float64, found bool) string {
		if !found {
			return "-"
		}
		return fmt.Sprint("#", (at-float64(today.Unix()))/60)
	}
	var first dto.Metric
	if err := b.Metrics()[0].Write(&first); err != nil {
		t.Fatal(err)
	}
	value := func(d *metric.Definition) (float64, bool) {
		v, found := values[d.Name+`{plan="p"}`]
		return v, found
	}
	return fmt.Sprint(values[planStock.restocks.Name+`{plan="p"}`], " ", values[planStock.sellouts.Name+`{plan="p"}`], " ",
		minute(float64(first.GetCounter().GetCreatedTimestamp().AsTime().Unix()), true), " ", minute(value(planStock.lastInStock)), " ", minute(value(planStock.changed)))
}
