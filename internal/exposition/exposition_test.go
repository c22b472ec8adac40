package exposition

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// acceptHeaders returns headers of scrapers by their names.
func acceptHeaders() map[string]string {
	return map[string]string{
		"none":              "",
		"browser":           "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"Prometheus 2.42":   "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"2.42 with natives": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"Prometheus 3":      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"OpenMetrics 0.0.1": "application/openmetrics-text;version=0.0.1",
		"OpenMetrics 2":     "application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.3",
	}
}

// testGroup is a group of two families, of counters and gauges, that is empty once it expired.
type testGroup struct {
	*Group
	samples   []*metric.Sample
	expires   time.Time
	collected atomic.Int32 // calls of Collect
}

func newTestGroup(name string) *testGroup {
	const help = "A help with \"quotes\", a \\ and\na line break."
	g, set := &testGroup{}, metric.Set{}
	set.Counter(name+"_bytes_total", help, "id", "text")
	set.Gauge(name+"_seconds", help, "id", "text")
	g.Group = &Group{
		Definitions: set,
		Collect: func(now time.Time) ([]*metric.Sample, time.Time) {
			g.collected.Add(1)
			if !g.expires.IsZero() && !now.Before(g.expires) {
				return nil, time.Time{}
			}
			return g.samples, g.expires
		},
	}
	return g
}

// set replaces the samples by n that have the value. Then the group must be marked as changed.
func (g *testGroup) set(n int, value float64) {
	var b metric.Builder
	for i := range n {
		b.AddCreated(g.Definitions[i%2], value, time.Unix(1_700_000_000, 5e8), fmt.Sprintf("object-%08d", i), "text \"with\" \\ and \n and ü")
	}
	g.samples = b.Metrics()
}

// harness serves the same metrics in two ways: from a publisher, and with promhttp.
type harness struct {
	*Handler
	promhttp http.Handler
	groups   []*testGroup
	errors   []string // errors that OnError got
}

// newHarness returns a harness with three groups that are not published yet.
func newHarness(samples int) *harness {
	dynamic := prometheus.NewRegistry()
	histogram := promauto.With(dynamic).NewHistogramVec(prometheus.HistogramOpts{
		Name: "server_rental_test_seconds", Help: "A histogram.", Unit: "seconds", NativeHistogramBucketFactor: 1.1, Buckets: []float64{0.1, 1},
	}, []string{"of", "as"})
	histogram.WithLabelValues("x", "y").Observe(0.3)
	histogram.WithLabelValues("b", "c").Observe(2)
	h := &harness{}
	for i := range 3 {
		h.groups = append(h.groups, newTestGroup(fmt.Sprintf("test_group_%d", i)))
		h.groups[i].set(samples/3, 1.25)
	}
	h.Handler = &Handler{
		Publisher: NewPublisher(h.groups[0].Group, h.groups[1].Group, h.groups[2].Group), Gatherer: dynamic,
		OnError: func(err error) { h.errors = append(h.errors, err.Error()) },
	}
	all := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { // prometheus.Gatherers drop the units
		published, err := h.Publisher.Gather()
		others, otherErr := dynamic.Gather()
		return slices.Concat(published, others), errors.Join(err, otherErr)
	})
	h.promhttp = promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, AcceptedFormats: formats()})
	return h
}

// scrape returns the response as text.
func (h *harness) scrape(encoding string) simtest.Response {
	return simtest.ServeGet(h, "/metrics", "Accept-Encoding", encoding)
}

// values returns the values that are served of a group's gauge.
func (h *harness) values(t *testing.T, group int) []float64 {
	t.Helper()
	return slices.Collect(maps.Values(h.scrape("").Exposition(t).WithPrefix(h.groups[group].Definitions[1].Name + "{")))
}

func (h *harness) collected() (n []int32) {
	for _, g := range h.groups {
		n = append(n, g.collected.Load())
	}
	return n
}

// run runs the publisher in a synctest bubble until the test ends.
func (h *harness) run(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Publisher.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	synctest.Wait()
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
		t.Fatal(err)
	}
	z.Multistream(false)
	text, err := io.ReadAll(z)
	if err != nil || body.Len() > 0 {
		t.Fatalf("gzip: %v, %d bytes after the first member", err, body.Len())
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
	simtest.AssertEqual(t, "Content-Length", got.Header.Get("Content-Length"), strconv.Itoa(len(got.Body)))
	gotText, wantText := decompress(t, got), decompress(t, want)
	simtest.AssertEqual(t, "length", len(gotText), len(wantText))
	if contentType := want.Header.Get("Content-Type"); strings.Contains(contentType, "protobuf") {
		simtest.AssertEqual(t, "metrics", simtest.ParseExposition(t, gotText, contentType), simtest.ParseExposition(t, wantText, contentType))
	} else {
		simtest.AssertEqual(t, "text", slices.Sorted(strings.Lines(gotText)), slices.Sorted(strings.Lines(wantText)))
	}
	simtest.AssertEqual(t, "errors", h.errors, []string(nil))
}

// TestSameAsPromhttp compares whole and selected responses of large families.
func TestSameAsPromhttp(t *testing.T) {
	h := newHarness(6_000)
	h.scrape("gzip") // nothing is published yet; this variant is encoded in advance from now on
	h.Publisher.Publish()
	for accept := range acceptHeaders() {
		for _, encoding := range []string{"", "gzip", "zstd", "gzip, deflate, br", "br", "identity;q=0.1, gzip;q=0"} {
			h.assertSame(t, "/metrics", accept, encoding)
		}
	}
	for _, accept := range []string{"none", "Prometheus 2.42", "2.42 with natives"} {
		for _, query := range []string{
			"name[]=server_rental_test_group_1_seconds&name[]=server_rental_test_seconds", "name[]=server_rental_test_group_2_bytes_total",
			"name[]=unknown", "name=server_rental_test_seconds", "name[]",
		} {
			h.assertSame(t, "/metrics?"+query, accept, "gzip")
		}
	}
}

// TestDuplicate asserts that a series with a duplicate is served once, next to all others.
func TestDuplicate(t *testing.T) {
	h := newHarness(30)
	g := h.groups[1]
	g.samples = append(g.samples, g.samples[0])
	h.Publisher.Publish()
	simtest.AssertEqual(t, "series", len(h.scrape("").Exposition(t).WithPrefix("server_rental_test_group_")), 30)
	simtest.AssertEqual(t, "errors", h.errors, []string{"server_rental_test_group_1_bytes_total: 1 duplicates"})
}

func TestPublishChangedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(6)
		h.run(t)
		simtest.AssertEqual(t, "values", [][]float64{h.values(t, 0), h.values(t, 1)}, [][]float64{{1.25}, {1.25}})
		time.Sleep(publishInterval / 2) // half of the time between two publications
		h.groups[1].set(2, 7)
		for range 5 {
			h.groups[1].Changed()
		}
		time.Sleep(publishInterval)
		synctest.Wait()
		simtest.AssertEqual(t, "value after Changed", h.values(t, 1), []float64{7})
		time.Sleep(time.Hour)
		simtest.AssertEqual(t, "collected", h.collected(), []int32{1, 2, 1})
	})
}

// TestExpiredIsNotServed asserts that a publisher which does not come round serves nothing that has
// expired, and that one which was set back to an earlier time collects again.
func TestExpiredIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(6)
		h.groups[0].expires = time.Now().Add(time.Minute)
		h.Publisher.Publish()
		time.Sleep(time.Minute + maxLate - 1)
		simtest.AssertEqual(t, "before", []any{h.values(t, 0), h.values(t, 1)}, []any{[]float64{1.25}, []float64{1.25}})
		time.Sleep(time.Nanosecond)
		simtest.AssertEqual(t, "expired", []any{h.values(t, 0), h.values(t, 1)}, []any{[]float64(nil), []float64{1.25}})
		h.Publisher.at = time.Now().Add(time.Hour)
		h.Publisher.Publish()
		simtest.AssertEqual(t, "collected", h.collected(), []int32{2, 2, 2})
	})
}

// TestRest asserts that the publisher rests a few seconds at most, however long it worked.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(6)
		collect := h.groups[0].Collect
		h.groups[0].Collect = func(now time.Time) ([]*metric.Sample, time.Time) {
			time.Sleep(time.Minute) // a busy machine
			return collect(now)
		}
		h.run(t)
		time.Sleep(time.Minute + 1)
		h.groups[1].Changed()
		time.Sleep(maxRest)
		synctest.Wait()
		simtest.AssertEqual(t, "collected", h.collected(), []int32{1, 2, 1})
	})
}

// TestExpiryEndsRest asserts that the rest after long work ends when something expires, so that
// others of its group do not disappear with it.
func TestExpiryEndsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(6)
		h.groups[0].expires = time.Now().Add(700 * time.Millisecond)
		collect := h.groups[0].Collect
		h.groups[0].Collect = func(now time.Time) ([]*metric.Sample, time.Time) {
			time.Sleep(200 * time.Millisecond) // it would rest for 1.8 seconds
			return collect(now)
		}
		h.run(t)
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		simtest.AssertEqual(t, "collected", h.collected(), []int32{2, 1, 1})
	})
}

// TestVariants asserts that a variant is kept once it was asked for, and in advance until it
// was not asked for a while.
func TestVariants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(6)
		kept := []int{}
		publish := func() {
			for _, g := range h.Publisher.groups {
				g.Changed()
			}
			h.Publisher.Publish()
			n := 0
			(*h.Publisher.published.Load())[0].families[0].encoded.Range(func(any, any) bool { n++; return true })
			kept = append(kept, n)
		}
		publish()
		h.scrape("")
		publish()
		h.scrape("gzip")
		publish()
		time.Sleep(variantTTL)
		h.scrape("")
		time.Sleep(time.Nanosecond)
		publish()
		time.Sleep(variantTTL)
		publish()
		simtest.AssertEqual(t, "variants kept", kept, []int{0, 1, 2, 1, 0})
	})
}

// TestGatherOneAtATime has many clients at once.
func TestGatherOneAtATime(t *testing.T) {
	h := newHarness(1)
	var running, most atomic.Int32
	gather := h.Gatherer.Gather
	h.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		n := running.Add(1)
		defer running.Add(-1)
		most.Store(max(most.Load(), n))
		runtime.Gosched()
		return gather()
	})
	var clients sync.WaitGroup
	for range 100 {
		clients.Go(func() { h.scrape("gzip") })
	}
	clients.Wait()
	simtest.AssertEqual(t, "at once", most.Load(), int32(1))
}
