package metric

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// format returns metrics as text, by type: labels in order of their names, value and
// created timestamp.
func format(samples []*Sample) []string {
	lines := []string{}
	for _, s := range samples {
		out := s.message()
		labels := []string{}
		for _, l := range out.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		kind, value, created := "gauge", out.GetGauge().GetValue(), ""
		if out.Counter != nil {
			kind, value = "counter", out.GetCounter().GetValue()
			if at := out.GetCounter().GetCreatedTimestamp(); at != nil {
				created = fmt.Sprintf(" since %d", at.AsTime().UnixMilli())
			}
		}
		lines = append(lines, fmt.Sprintf("%s{%s} %v%s", kind, strings.Join(labels, ","), value, created))
	}
	return lines
}

type number float64

func TestBuilder(t *testing.T) {
	plain := Gauge("plain", "Help.")
	one := Gauge("one", "Help.", "a")
	two := Counter("two_total", "Help.", "b", "account")
	yes, no, five := true, false, number(5)
	at := time.UnixMilli(1_700_000_000_500)
	for _, c := range []struct {
		name  string
		build func(b *Builder)
		want  []string
	}{
		{"nothing", func(*Builder) {}, []string{}},
		{"samples", func(b *Builder) { b.Add(plain, 1); b.Add(one, 2, "x") }, []string{"gauge{} 1", "gauge{a=x} 2"}},
		{"sorted labels", func(b *Builder) { b.Add(two, 3, "y", "main") }, []string{"counter{account=main,b=y} 3"}},
		{"label values of all", func(b *Builder) {
			b.ConstLabelValues = []string{"y"}
			b.Add(two, 3, "main")
			b.Add(two, 4, "lab")
		}, []string{"counter{account=main,b=y} 3", "counter{account=lab,b=y} 4"}},
		{"first label values alike", func(b *Builder) {
			b.ConstLabelValues = []string{"y"}
			b.Add(two, 3, "main")
			b.Add(one, 4)
			b.Add(two, 5, "main")
			b.Add(two, 6, "lab")
			b.Add(one, 7)
			b.ConstLabelValues = []string{"z"}
			b.Add(two, 8, "lab")
		}, []string{"counter{account=main,b=y} 3", "gauge{a=y} 4", "counter{account=main,b=y} 5", "counter{account=lab,b=y} 6", "gauge{a=y} 7", "counter{account=lab,b=z} 8"}},
		{"created", func(b *Builder) { b.AddCreated(two, 3, at, "y", "main"); b.AddCreated(plain, 3, at) }, []string{"counter{account=main,b=y} 3 since 1700000000500", "gauge{} 3"}},
		{"created before 1970", func(b *Builder) { b.AddCreated(two, 3, time.Unix(-1, 0), "y", "main") }, []string{"counter{account=main,b=y} 3"}},
		{"booleans", func(b *Builder) { b.AddBool(plain, &yes); b.AddBool(plain, &no); b.AddBool(plain, nil) }, []string{"gauge{} 1", "gauge{} 0"}},
		{"numbers", func(b *Builder) { AddOptional(b, plain, &five); AddOptional[number](b, plain, nil) }, []string{"gauge{} 5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &Builder{}
			c.build(b)
			simtest.AssertEqual(t, "samples", format(b.Metrics()), c.want)
		})
	}
}

func TestDefinition(t *testing.T) {
	for _, c := range []struct {
		d    *Definition
		want []string // name, type, base unit
	}{
		{Gauge("up", "H."), []string{"server_rental_up", "gauge", ""}},
		{Gauge("plan_price_usd_per_month", "H.", "plan"), []string{"server_rental_plan_price_usd_per_month", "gauge", ""}},
		{Counter("credit_usd_total", "H.", "account", "type"), []string{"server_rental_credit_usd_total", "counter", ""}},
		{Counter("sent_bytes_total", "H."), []string{"server_rental_sent_bytes_total", "counter", "bytes"}},
		{Gauge("seen_timestamp_seconds", "H."), []string{"server_rental_seen_timestamp_seconds", "gauge", "seconds"}},
		{Histogram("duration_seconds", "H.", "endpoint"), []string{"server_rental_duration_seconds", "histogram", "seconds"}},
		{Gauge("memory_bytes", "H.", "plan"), []string{"server_rental_memory_bytes", "gauge", "bytes"}},
		{Gauge("base_hertz", "H.", "plan"), []string{"server_rental_base_hertz", "gauge", "hertz"}},
		{Gauge("latitude_degrees", "H.", "location"), []string{"server_rental_latitude_degrees", "gauge", "degrees"}},
		{Gauge("bonus_ratio", "H.", "topup"), []string{"server_rental_bonus_ratio", "gauge", "ratio"}},
	} {
		t.Run(c.d.Name, func(t *testing.T) {
			simtest.AssertEqual(t, "definition", []string{c.d.Name, c.d.Type, c.d.BaseUnit()}, c.want)
			f := c.d.Family(nil)
			simtest.AssertEqual(t, "family", []string{f.GetName(), strings.ToLower(f.GetType().String()), f.GetUnit()}, c.want)
		})
	}
}

// TestSample reads and compares samples of one family.
func TestSample(t *testing.T) {
	d := Gauge("up", "H.", "b", "a")
	x, y := &Sample{d, 1, []string{"x", "1"}, 0}, &Sample{d, 2, []string{"x", "2"}, 0}
	simtest.AssertEqual(t, "sample", []any{x.Label("a"), x.Label("c")}, []any{"1", ""})
	simtest.AssertEqual(t, "order", []int{x.CompareFirst(y.Labels), y.CompareFirst(x.Labels), x.CompareFirst(y.Labels[:1])}, []int{-1, 1, 0})
	var values []float64
	for _, m := range d.Family([]*Sample{x, y}).GetMetric() {
		values = append(values, m.GetGauge().GetValue())
	}
	simtest.AssertEqual(t, "values of the family", values, []float64{1, 2})
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	simtest.AssertEqual(t, "earlier", []time.Time{Earlier(early, late), Earlier(late, early), Earlier(time.Time{}, late), Earlier(late, time.Time{})}, []time.Time{early, early, late, late})
}
