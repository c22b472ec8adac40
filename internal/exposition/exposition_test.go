package exposition

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// acceptHeaders returns headers of scrapers by their names.
func acceptHeaders() map[string]string {
	return map[string]string{
		"none":              "",
		"browser":           "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"Prometheus 2.42":   "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"with natives":      "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"Prometheus 3":      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"OpenMetrics 0.0.1": "application/openmetrics-text;version=0.0.1",
		"OpenMetrics 2":     "application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.3",
	}
}

// harness serves the same metrics in two ways: from a publisher, and with promhttp.
type harness struct {
	*Handler
	promhttp  http.Handler
	samples   []*metric.Sample // of a counter and a gauge; none once they expired
	expires   time.Time
	work      time.Duration // that a collection takes
	collected int           // number of collections
	errors    []string      // errors that OnError got
}

// newHarness returns a harness with samples that are not published yet.
func newHarness(samples int) *harness {
	dynamic := prometheus.NewRegistry()
	histogram := promauto.With(dynamic).NewHistogramVec(prometheus.HistogramOpts{
		Name: "server_rental_test_seconds", Help: "A histogram.", Unit: "seconds", NativeHistogramBucketFactor: 1.1, Buckets: []float64{0.1, 1},
	}, []string{"of", "as"})
	histogram.WithLabelValues("x", "y").Observe(0.3)
	histogram.WithLabelValues("b", "c").Observe(2)
	const help = "A help with \"quotes\", a \\ and\na line break."
	h, set := &harness{}, metric.Set{}
	set.Counter("test_bytes_total", help, "id", "text")
	set.Gauge("test_of_seconds", help, "id", "text")
	publisher := NewPublisher(set, func(now time.Time) ([]*metric.Sample, time.Time) {
		h.collected++
		time.Sleep(h.work)
		if !h.expires.IsZero() && !now.Before(h.expires) {
			return nil, time.Time{}
		}
		return h.samples, h.expires
	})
	h.Handler = &Handler{Publisher: publisher, Gatherer: dynamic, OnError: func(err error) { h.errors = append(h.errors, err.Error()) }}
	h.set(samples, 1.25)
	all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { // prometheus.Gatherers drop the units
		published, err := h.Publisher.Gather()
		others, otherErr := dynamic.Gather()
		return slices.Concat(published, others), errors.Join(err, otherErr)
	})
	h.promhttp = promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, AcceptedFormats: formats})
	return h
}

// set replaces the samples by n that have the value.
func (h *harness) set(n int, value float64) {
	var b metric.Builder
	for i := range n {
		b.AddCreated(h.Publisher.definitions[i%2], value, time.Unix(1_700_000_000, 5e8), fmt.Sprintf("object-%08d", i), "text \"with\" \\ and \n and ü")
	}
	h.samples = b.Metrics()
	h.Publisher.Changed()
}

// scrape returns the response as text.
func (h *harness) scrape(encoding string) simtest.Response {
	return simtest.ServeGet(h, "/metrics", "Accept-Encoding", encoding)
}

// values returns the values that are served of the gauge.
func (h *harness) values(t *testing.T) []float64 {
	t.Helper()
	return slices.Collect(maps.Values(h.scrape("").Exposition(t).WithPrefix("server_rental_test_of_seconds{")))
}

// decompress returns the body, of which a gzip reader must read all as one member.
func decompress(t *testing.T, r simtest.Response) string {
	t.Helper()
	if r.Header.Get("Content-Encoding") != "gzip" {
		return r.Body
	}
	body := strings.NewReader(r.Body)
	z, err := gzip.NewReader(body)
	if err != nil {
		t.Error(err)
		return ""
	}
	z.Multistream(false)
	text, err := io.ReadAll(z)
	if err != nil || body.Len() > 0 {
		t.Errorf("gzip: %v, %d bytes after the first member", err, body.Len())
	}
	return string(text)
}

// assertSame compares the response with that of promhttp, except for the order of families.
func (h *harness) assertSame(t *testing.T, target, accept, encoding string) {
	t.Helper()
	t.Logf("%s as %s, encoded %q:", target, accept, encoding)
	headers := []string{"Accept", acceptHeaders()[accept], "Accept-Encoding", encoding}
	got, want := simtest.ServeGet(h, target, headers...), simtest.ServeGet(h.promhttp, target, headers...)
	for _, header := range []string{"Content-Type", "Content-Encoding", "Vary"} {
		simtest.AssertEqual(t, header, got.Header[header], want.Header[header])
	}
	gotText, wantText := decompress(t, got), decompress(t, want)
	simtest.AssertEqual(t, "length", len(gotText), len(wantText))
	if contentType := want.Header.Get("Content-Type"); strings.Contains(contentType, "protobuf") {
		simtest.AssertEqual(t, "metrics", simtest.ParseExposition(t, gotText, contentType), simtest.ParseExposition(t, wantText, contentType))
	} else {
		simtest.AssertEqual(t, "text", slices.Sorted(strings.Lines(gotText)), slices.Sorted(strings.Lines(wantText)))
	}
}

// TestSameAsPromhttp compares whole and selected responses of large families, of which many clients ask for each at
// once.
func TestSameAsPromhttp(t *testing.T) {
	h := newHarness(6_000)
	h.scrape("gzip") // nothing is published yet; this variant is encoded in advance from now on
	h.Publisher.Publish()
	var clients sync.WaitGroup
	for accept := range acceptHeaders() {
		for _, encoding := range []string{"", "gzip", "zstd", "gzip, deflate, br", "br", "identity;q=0.1, gzip;q=0"} {
			clients.Go(func() { h.assertSame(t, "/metrics", accept, encoding) })
		}
	}
	for _, accept := range []string{"none", "Prometheus 2.42", "with natives"} {
		for _, query := range []string{
			"name[]=server_rental_test_of_seconds&name[]=server_rental_test_seconds", "name[]=server_rental_test_bytes_total",
			"name[]=unknown", "name=server_rental_test_seconds", "name[]",
		} {
			clients.Go(func() { h.assertSame(t, "/metrics?"+query, accept, "gzip") })
		}
	}
	clients.Wait()
	simtest.AssertEqual(t, "errors", h.errors, []string(nil))
}

// TestDuplicate asserts that a series with a duplicate is served once, next to all others.
func TestDuplicate(t *testing.T) {
	h := newHarness(30)
	h.samples = append(h.samples, h.samples[0])
	h.Publisher.Publish()
	simtest.AssertEqual(t, "series", len(h.scrape("").Exposition(t).WithPrefix("server_rental_test_")), 32)
	simtest.AssertEqual(t, "errors", h.errors, []string{"server_rental_test_bytes_total: 1 duplicates"})
}

// TestLatePublisher asserts that a scrape publishes what has expired, or was published in the future, if
// the publisher does not come round.
func TestLatePublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(2)
		h.expires = time.Now().Add(time.Minute)
		h.Publisher.Publish()
		time.Sleep(time.Minute + maxLate - 1)
		simtest.AssertEqual(t, "before", h.values(t), []float64{1.25})
		time.Sleep(time.Nanosecond)
		for range 3 {
			simtest.AssertEqual(t, "expired", h.values(t), []float64(nil))
		}
		simtest.AssertEqual(t, "collected", h.collected, 2)
		h.Publisher.page.Load().at = time.Now().Add(time.Hour)
		for range 3 {
			h.scrape("")
		}
		simtest.AssertEqual(t, "collected after the clock was set back", h.collected, 3)
	})
}

// TestRun asserts that the publisher publishes what changed or expired, once, and rests for a few seconds at
// most, however long it worked.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		work, expires, until time.Duration
		want                 []float64
	}{
		{0, 0, publishInterval, []float64{4}},
		{time.Minute, 0, 2*time.Minute + maxRest, []float64{4}},                       // a busy machine
		{200 * time.Millisecond, 700 * time.Millisecond, 900 * time.Millisecond, nil}, // it would rest for 1.8 seconds
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(2)
			h.work = c.work
			if c.expires > 0 {
				h.expires = time.Now().Add(c.expires)
			}
			go h.Publisher.Run(t.Context())
			time.Sleep(c.work)
			synctest.Wait()
			simtest.AssertEqual(t, "value", h.values(t), []float64{1.25})
			for value := range 5 {
				if c.expires == 0 {
					h.set(2, float64(value))
				}
			}
			time.Sleep(c.until - c.work)
			synctest.Wait()
			simtest.AssertEqual(t, "later value", h.values(t), c.want)
			time.Sleep(time.Hour)
			simtest.AssertEqual(t, "collected", h.collected, 2)
		})
	}
}

// TestEncodings asserts that a variant is encoded once for each publication: when it is asked for, and in
// advance until it was not asked for a while.
func TestEncodings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, zipped := newHarness(6), variant{expfmt.FmtText, true}
		publish := func() (encoded int) {
			h.Publisher.Changed()
			h.Publisher.Publish()
			h.Publisher.page.Load().encoded.Range(func(any, any) bool { encoded++; return true })
			return encoded
		}
		kept := []int{publish()}
		h.scrape("")
		kept = append(kept, publish())
		h.scrape("gzip")
		kept = append(kept, publish())
		firstByte := func() *byte { return &h.Publisher.encode(h.Publisher.page.Load(), zipped, nil).body[0][0] }
		before := firstByte()
		time.Sleep(variantTTL)
		h.scrape("")
		h.scrape("gzip;q=0.5")
		simtest.AssertEqual(t, "encoded once", before == firstByte(), true)
		h.Publisher.lastUsed.Delete(zipped)
		time.Sleep(time.Nanosecond)
		kept = append(kept, publish())
		time.Sleep(variantTTL)
		simtest.AssertEqual(t, "variants kept", append(kept, publish()), []int{0, 1, 2, 1, 0})
	})
}
