package collector

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	kitlog "github.com/go-kit/log"
	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/refresh"
	"server_rental_exporter/internal/rentalapi"
)

// constant answers every request with the same body.
type constant struct{ body []byte }

func (c constant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

// shown is what a resource shows after a fetch, as a collector.
type shown struct{ metrics []prometheus.Metric }

func (shown) Describe(chan<- *prometheus.Desc) {}

func (s shown) Collect(ch chan<- prometheus.Metric) {
	for _, m := range s.metrics {
		ch <- m
	}
}

// FuzzItems has each resource answered with any bytes. Whatever they are, a fetch
// ends, and what it shows can be gathered.
func FuzzItems(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	index := map[string]uint8{}
	for i, r := range Resources() {
		index[r.Name] = uint8(i)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(index[filepath.Base(filepath.Dir(file))], body)
	}
	for i := range Resources() {
		f.Add(uint8(i), []byte(`{"data":[{"id":"a"},{"id":"a"},{"id":1}],"meta":{"total":3,"pages":2}}`))
		f.Add(uint8(i), []byte(`{"data":{"id":"a","locations":{"a":{"components":{"b":"c"}}}},"meta":null}`))
	}
	base := &url.URL{Scheme: "https", Host: "rental.example", Path: prefix}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		r := Resources()[int(which)%len(Resources())]
		client := rentalapi.New("fuzz/1", rentalapi.Settings{
			BaseURL: base, Transport: constant{body}, Timeout: time.Minute,
			Limits: rentalapi.Limits{Public: 1000, Account: 1000, AccountBulk: 1000},
		})
		scope := client.Scope("main", func() (string, error) { return mainToken, nil })
		ask := r.open()
		for range 4 { // pages of a walk, or refreshes
			b := &metric.Builder{}
			if r.Account {
				b.Prefix = []string{"main"}
			}
			snap, err := ask(context.Background(), scope, b)
			if errors.Is(err, refresh.ErrMore) {
				continue
			}
			if err != nil && (len(snap.metrics) > 0 || snap.data != nil) {
				t.Errorf("%s: data along with the error %v", r.Name, err)
			}
			if err != nil {
				keepsSecrets(t, "error", err.Error())
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(shown{snap.metrics})
			families, err := registry.Gather()
			if err != nil {
				t.Errorf("%s: Gather: %v", r.Name, err)
			}
			own := map[string]bool{}
			for _, d := range r.Metrics {
				own[d.Name] = true
			}
			for _, family := range families {
				if !own[family.GetName()] {
					t.Errorf("%s shows %s, which it does not define", r.Name, family.GetName())
				}
			}
			journal := journal{logger: kitlog.NewNopLogger()}
			journal.note(snap.invalid, err)
			if fleet, is := snap.data.(*fleet); is {
				fleet.renewals.fundedUntil(100, today)
			}
		}
	})
}
