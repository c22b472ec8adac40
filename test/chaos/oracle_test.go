package chaos_test

import (
	"context"
	"io"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// samples are values by series.
type samples = map[string]float64

func familyOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}

// resourceOf returns the collector that a metric family belongs to; none for those
// that do not follow from one state of a resource.
var resourceOf = func() map[string]string {
	owners := map[string]string{}
	for _, r := range collector.Resources() {
		for _, d := range r.Metrics {
			owners[d.Name] = r.Name
		}
	}
	for _, name := range []string{"restocks_total", "sellouts_total", "last_in_stock_timestamp_seconds", "stock_changed_timestamp_seconds"} {
		delete(owners, "server_rental_plan_"+name)
	}
	return owners
}()

// getter reads responses of a provider without faults, limits and a cache.
type getter struct {
	api   *simtest.API
	token string
}

// Get implements rentalapi.Getter.
func (g getter) Get(_ context.Context, path string, query url.Values, read func(io.Reader) error) (rentalapi.Response, error) {
	body := g.api.Body(path+"?"+query.Encode(), g.token)
	return rentalapi.Response{Received: time.Now()}, read(strings.NewReader(body))
}

// presentState returns the samples of the provider's present data of a resource, mapped
// in one undisturbed step. That each value is mapped right is what the golden files of
// collector show.
func presentState(t *testing.T, r collector.Resource, api getter, account string) samples {
	t.Helper()
	snapshot, err := r.NewFetcher(account)(t.Context(), api)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Name, account, err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		for _, m := range snapshot.Metrics {
			ch <- m
		}
	}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := simtest.NewExposition(t, families).Values
	maps.DeleteFunc(found, func(series string, _ float64) bool { return resourceOf[familyOf(series)] != r.Name })
	found[invalidItems(r.Name, account)] = comparedInvalid(r.Name, float64(snapshot.Invalid.Items))
	return found
}

// comparedInvalid is 0 for the invalid items of topups, which are not compared: counts of
// top-ups that change meanwhile are among them.
func comparedInvalid(name string, invalid float64) float64 {
	if name == "topups" {
		return 0
	}
	return invalid
}

func invalidItems(name, account string) string {
	return simtest.Series("server_rental_exporter_collector_invalid_items", "collector", name, "account", account)
}
