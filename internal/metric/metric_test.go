package metric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// samples are metrics as text, with the help of their descriptors left out.
func samples(t *testing.T, metrics []prometheus.Metric) []string {
	t.Helper()
	var lines []string
	for _, m := range metrics {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, l := range out.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		kind, value := "gauge", out.GetGauge().GetValue()
		if out.Counter != nil {
			kind, value = "counter", out.GetCounter().GetValue()
		}
		lines = append(lines, fmt.Sprintf("%s{%s} %v", kind, strings.Join(labels, ","), value))
	}
	return lines
}

type number float64

func TestBuilder(t *testing.T) {
	plain := Gauge("plain", "Help.", "source")
	one := Gauge("one", "Help.", "source", "a")
	two := Counter("two_total", "Help.", "source", "account", "b")
	yes, no, five := true, false, number(5)
	long, longest := strings.Repeat("x", MaxLabelLength+1), strings.Repeat("x", MaxLabelLength)
	for _, c := range []struct {
		name  string
		build func(b *Builder)
		want  []string
		err   string // of the whole as one item
	}{
		{"nothing", func(*Builder) {}, nil, ""},
		{"samples", func(b *Builder) { b.Add(plain, 1); b.Add(one, 2, "x") }, []string{"gauge{} 1", "gauge{a=x} 2"}, ""},
		{"prefix", func(b *Builder) { b.Prefix = []string{"main"}; b.Add(two, 3, "y"); b.Add(two, 4, "z") }, []string{"counter{account=main,b=y} 3", "counter{account=main,b=z} 4"}, ""},
		{"booleans", func(b *Builder) { b.Bool(plain, &yes); b.Bool(plain, &no); b.Bool(plain, nil) }, []string{"gauge{} 1", "gauge{} 0"}, ""},
		{"numbers", func(b *Builder) { Put(b, plain, &five); Put[number](b, plain, nil) }, []string{"gauge{} 5"}, ""},
		{"longest label", func(b *Builder) { b.Add(one, 1, longest) }, []string{"gauge{a=" + longest + "} 1"}, ""},
		{"label too long", func(b *Builder) { b.Add(one, 1, "x"); b.Add(one, 1, long) }, nil, "label a: 2049 bytes, more than 2048"},
		{"label too long behind a prefix", func(b *Builder) { b.Prefix = []string{"main"}; b.Add(two, 1, long) }, nil, "label b: 2049 bytes, more than 2048"},
		{"no UTF-8", func(b *Builder) { b.Add(one, 1, "\xff") }, nil, "label a: not UTF-8"},
		{"too many labels", func(b *Builder) { b.Add(one, 1, "x", "y") }, nil, "2 label values for 1 labels"},
		{"too few labels", func(b *Builder) { b.Add(one, 1) }, nil, "0 label values for 1 labels"},
		{"good items stay", func(b *Builder) {
			_ = b.Item(func() { b.Add(one, 1, "first") })
			_ = b.Item(func() { b.Add(one, 2, "half"); b.Add(one, 2, long); b.Add(one, 2, "other half") })
			_ = b.Item(func() { b.Add(one, 3, "third") })
		}, []string{"gauge{a=first} 1", "gauge{a=third} 3"}, ""},
		{"a fault before an item is kept", func(b *Builder) {
			b.Add(one, 1, long)
			_ = b.Item(func() { b.Add(one, 3, "good") })
		}, nil, "label a: 2049 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &Builder{}
			err := b.Item(func() { c.build(b) })
			if c.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error: got %v, want %q", err, c.err)
			}
			if len(fmt.Sprint(err)) > 200 {
				t.Errorf("error of %d bytes", len(fmt.Sprint(err)))
			}
			same(t, "samples", samples(t, b.Metrics()), c.want)
		})
	}
}

func TestDefinition(t *testing.T) {
	for _, c := range []struct {
		d    *Definition
		want string // name, type, unit, series
	}{
		{Gauge("up", "H.", "s"), "server_rental_up gauge  one"},
		{Gauge("plan_price_usd_per_month", "H.", "s", "plan"), "server_rental_plan_price_usd_per_month gauge USD per month one per plan"},
		{Gauge("plan_price_eur_per_month", "H.", "s", "plan"), "server_rental_plan_price_eur_per_month gauge EUR per month one per plan"},
		{Counter("credit_usd_total", "H.", "s", "account", "type"), "server_rental_credit_usd_total counter USD one per account and type"},
		{Gauge("balance_usd", "H.", "s", "account"), "server_rental_balance_usd gauge USD one per account"},
		{Gauge("seen_timestamp_seconds", "H.", "s"), "server_rental_seen_timestamp_seconds gauge Unix seconds one"},
		{Histogram("duration_seconds", "H.", "s", "endpoint"), "server_rental_duration_seconds histogram seconds one per endpoint"},
		{Gauge("memory_bytes", "H.", "s", "plan"), "server_rental_memory_bytes gauge bytes one per plan"},
		{Gauge("base_hertz", "H.", "s", "plan"), "server_rental_base_hertz gauge hertz one per plan"},
		{Gauge("latitude_degrees", "H.", "s", "location"), "server_rental_latitude_degrees gauge degrees one per location"},
		{Gauge("bonus_ratio", "H.", "s", "topup"), "server_rental_bonus_ratio gauge ratio, 0 to 1 one per topup"},
		{Gauge("license_usd_per_core_month", "H.", "s", "os"), "server_rental_license_usd_per_core_month gauge USD per core and month one per os"},
		{Gauge("offered", "H.", "s", "plan", "location").Per("plan and location"), "server_rental_offered gauge  one per plan and location"},
	} {
		t.Run(c.d.Name, func(t *testing.T) {
			same(t, "definition", fmt.Sprintf("%s %s %s %s", c.d.Name, c.d.Type, c.d.Unit(), c.d.Series()), c.want)
			same(t, "descriptor", strings.Contains(c.d.Desc().String(), `fqName: "`+c.d.Name+`", help: "H."`), true)
		})
	}
}
