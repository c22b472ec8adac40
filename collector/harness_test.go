package collector

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// accountOf returns the account of a resource, empty for public ones.
func accountOf(r Resource) string {
	if r.Account {
		return "main"
	}
	return ""
}

// fetched is a snapshot, with the metrics of the history up to it.
type fetched struct {
	Snapshot
	history History
}

// newFetcher returns a function that fetches a resource of the provider that it is given, again
// and again. A panic, such as that of a sample without a value for each label, fails the test
// and not all others.
func newFetcher(t testing.TB, r Resource) func(context.Context, rentalapi.Getter) (fetched, error) {
	f, history := Fetcher{Resource: &r, Account: accountOf(r)}, History{}
	return func(ctx context.Context, api rentalapi.Getter) (fetched, error) {
		defer func() {
			if p := recover(); p != nil {
				t.Fatalf("%s: %v", r.Name, p)
			}
		}()
		f.API = api
		s, err := f.Fetch(ctx)
		if err == nil {
			history = history.Step(&r, f.Account, s, s.Made)
			s.Metrics = slices.Concat(s.Metrics, history.Metrics)
		}
		return fetched{s, history}, err
	}
}

// fetchBody fetches a resource from a provider whose responses all have the same body.
func fetchBody(t testing.TB, r Resource, body []byte) (Snapshot, error) {
	t.Helper()
	f, err := newFetcher(t, r)(t.Context(), &fakeAPI{response: rentalapi.Response{Received: today}, body: func(url.Values) []byte { return body }})
	return f.Snapshot, err
}

// textOf returns metrics in the text format.
func textOf(t testing.TB, metrics []*metric.Sample) string {
	t.Helper()
	p := exposition.NewPublisher(&exposition.Group{Definitions: Definitions(), Collect: func(time.Time) ([]*metric.Sample, time.Time) {
		return metrics, time.Time{}
	}})
	p.Publish()
	families, err := prometheus.Gatherers{p}.Gather()
	if err != nil {
		t.Errorf("Gather: %v", err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Errorf("text format: %v", err)
		}
	}
	simtest.AssertNoSecrets(t, "exposition", b.String())
	return b.String()
}

// exposed returns the series of metrics.
func exposed(t testing.TB, metrics []*metric.Sample) map[string]float64 {
	t.Helper()
	return simtest.ParseExposition(t, textOf(t, metrics), "text/plain").Values
}

func ptr[T any](v T) *T { return &v }
