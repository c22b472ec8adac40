package simtest

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Exposition is a parsed page of metrics.
type Exposition struct {
	Families map[string]Family
	Values   map[string]float64 // values by series as written by [Series]; of a histogram its count, of a summary its sum
}

// Family is what a page exposes of one metric family.
type Family struct {
	Type, Help      string // the type in lower case
	Classic, Native bool   // which buckets a histogram has
}

// Series returns the key of a series in Exposition.Values: name{a="1",b="2"},
// with labels in order of their names. labels is names and values in turn.
func Series(name string, labels ...string) string {
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+"="+strconv.Quote(labels[i+1]))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// Label returns the value of a label of a key written by [Series].
func Label(series, name string) string {
	for _, start := range []string{"{", ","} {
		if _, after, found := strings.Cut(series, start+name+"="); found {
			quoted, _ := strconv.QuotedPrefix(after)
			value, _ := strconv.Unquote(quoted)
			return value
		}
	}
	return ""
}

// ParseExposition parses the text and the protobuf format. It fails the test if the page
// cannot be parsed to its end or has a series twice.
func ParseExposition(t testing.TB, body, contentType string) Exposition {
	t.Helper()
	var families []*dto.MetricFamily
	decoder := expfmt.NewDecoder(strings.NewReader(body), expfmt.ResponseFormat(http.Header{"Content-Type": {contentType}}))
	for {
		var f dto.MetricFamily
		err := decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			return NewExposition(t, families)
		}
		if err != nil {
			t.Fatalf("%s: %v: %.2000s", contentType, err, body)
		}
		families = append(families, &f)
	}
}

// NewExposition is the exposition of gathered metrics.
func NewExposition(t testing.TB, families []*dto.MetricFamily) Exposition {
	t.Helper()
	e := Exposition{map[string]Family{}, map[string]float64{}}
	for _, f := range families {
		family := Family{Type: strings.ToLower(f.GetType().String()), Help: f.GetHelp()}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			family.Classic = family.Classic || len(m.GetHistogram().GetBucket()) > 0
			family.Native = family.Native || m.Histogram != nil && m.Histogram.Schema != nil
			series := Series(f.GetName(), labels...)
			if _, found := e.Values[series]; found {
				t.Fatalf("exposed twice: %s", series)
			}
			e.Values[series] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() +
				m.GetSummary().GetSampleSum() + float64(m.GetHistogram().GetSampleCount())
		}
		e.Families[f.GetName()] = family
	}
	return e
}

// WithPrefix returns the values of the series that begin with prefix. For one
// family, the prefix ends with "{".
func (e Exposition) WithPrefix(prefix string) map[string]float64 {
	found := maps.Clone(e.Values)
	maps.DeleteFunc(found, func(series string, _ float64) bool { return !strings.HasPrefix(series, prefix) })
	return found
}

// Data returns the values of the provider's data, without the exporter's own metrics.
func (e Exposition) Data() map[string]float64 {
	found := e.WithPrefix("server_rental_")
	maps.DeleteFunc(found, func(series string, _ float64) bool { return strings.HasPrefix(series, "server_rental_exporter_") })
	return found
}

// CollectorSuccess returns collector_success by collector and account ("servers main").
func (e Exposition) CollectorSuccess() map[string]float64 {
	found := map[string]float64{}
	for series, v := range e.WithPrefix("server_rental_exporter_collector_success{") {
		found[strings.TrimSuffix(Label(series, "collector")+" "+Label(series, "account"), " ")] = v
	}
	return found
}
