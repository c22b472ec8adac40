package exposition

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/quick"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/promhttp/zstd" // the handler that is compared with answers in zstd
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
)

// acceptHeaders are those that scrapers send.
func acceptHeaders() map[string]string {
	return map[string]string{
		"none":               "",
		"a browser":          "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"Prometheus 2.42":    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"2.42 with natives":  "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"Prometheus 3":       "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"3 with natives":     "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.2",
		"vmagent":            "text/plain;version=0.0.4;q=1,*/*;q=0.1",
		"OpenMetrics 0.0.1":  "application/openmetrics-text;version=0.0.1",
		"text, dots escaped": "text/plain;version=0.0.4;escaping=dots",
	}
}

func desc(i int) *prometheus.Desc {
	return prometheus.NewDesc(fmt.Sprintf("test_family_%d_total", i), `A help with "quotes", a \ and
a line break.`, []string{"id", "text"}, nil)
}

// metrics returns n samples of a block's families.
func metrics(block, families, n int) ([]prometheus.Metric, []*prometheus.Desc) {
	var ds []*prometheus.Desc
	for f := range families {
		ds = append(ds, desc(block*families+f))
	}
	ms := make([]prometheus.Metric, 0, n)
	for i := range n {
		ms = append(ms, prometheus.MustNewConstMetric(ds[i%families], prometheus.CounterValue, float64(i)*1.25,
			fmt.Sprintf("object-%08d", i/families), "text \"with\" \\ and \n and ü"))
	}
	return ms, ds
}

// rig is both ways of serving the same metrics.
type rig struct {
	blocks []*Block
	plain  http.Handler
	*Handler
	failed []string
}

func newRig(tb testing.TB, samples int) *rig {
	tb.Helper()
	own := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "test_seconds", Help: "A histogram.", NativeHistogramBucketFactor: 1.1, Buckets: []float64{0.1, 1},
	}, []string{"of"})
	h.WithLabelValues("x").Observe(0.3)
	own.MustRegister(h)
	data := prometheus.NewRegistry()
	r := &rig{}
	for i := range 3 {
		b := NewBlock(metrics(i, 4, samples/3))
		data.MustRegister(b)
		r.blocks = append(r.blocks, b)
	}
	r.plain = promhttp.HandlerFor(prometheus.Gatherers{own, data}, HandlerOptions())
	r.Handler = &Handler{
		Blocks: func() []*Block { return r.blocks },
		Own:    own, Whole: r.plain,
		Failed: func(cause string, err error) { r.failed = append(r.failed, cause+": "+err.Error()) },
	}
	return r
}

func get(h http.Handler, accept, coding string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if coding != "" {
		req.Header.Set("Accept-Encoding", coding)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func decompress(t *testing.T, w *httptest.ResponseRecorder) []byte {
	t.Helper()
	var r io.Reader = w.Body
	var err error
	switch w.Header().Get("Content-Encoding") {
	case "gzip":
		var z *gzip.Reader
		z, err = gzip.NewReader(w.Body)
		if err == nil {
			z.Multistream(false) // a second member would be left over
		}
		r = z
	case "zstd":
		r, err = zstd.NewReader(w.Body)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if rest := w.Body.Len(); rest > 0 && w.Header().Get("Content-Encoding") == "gzip" {
		t.Errorf("%d bytes behind the end", rest)
	}
	return raw
}

// samples parses an answer with an own reader for each format, and sorts it.
func samples(t *testing.T, contentType string, raw []byte) []string {
	t.Helper()
	format := expfmt.Format(contentType)
	if format.FormatType() == expfmt.TypeOpenMetrics {
		if n := bytes.Count(raw, []byte("# EOF")); n != 1 || !bytes.HasSuffix(raw, []byte("# EOF\n")) {
			t.Errorf("%d times # EOF, or not at the end", n)
		}
		lines := strings.Split(string(raw), "\n")
		slices.Sort(lines)
		return lines
	}
	var out []string
	dec := expfmt.NewDecoder(bytes.NewReader(raw), format)
	for {
		var f dto.MetricFamily
		err := dec.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.GetMetric() {
			text, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f.GetName()+" "+f.GetHelp()+" "+f.GetType().String()+" "+string(text))
		}
	}
	slices.Sort(out)
	return out
}

// TestSameAsPlain compares each answer with that of the plain registry, sample by sample.
func TestSameAsPlain(t *testing.T) {
	r := newRig(t, 300)
	for name, accept := range acceptHeaders() {
		for _, coding := range []string{"", "gzip", "zstd", "gzip, deflate, br", "zstd;q=0.9, gzip;q=0.1", "*", "br", "identity;q=0.1, gzip;q=0"} {
			t.Run(name+" "+coding, func(t *testing.T) {
				for range 2 { // the second time from what was kept
					ours, plain := get(r, accept, coding), get(r.plain, accept, coding)
					for _, header := range []string{"Content-Type", "Content-Encoding", "Vary"} {
						if got, want := ours.Header()[header], plain.Header()[header]; !slices.Equal(got, want) {
							t.Errorf("%s: got %q, want %q", header, got, want)
						}
					}
					if got, want := ours.Header().Get("Content-Length"), fmt.Sprint(ours.Body.Len()); got != want {
						t.Errorf("Content-Length: got %s, want %s", got, want)
					}
					contentType := plain.Header().Get("Content-Type")
					got, want := samples(t, contentType, decompress(t, ours)), samples(t, contentType, decompress(t, plain))
					if !slices.Equal(got, want) {
						t.Errorf("got %d samples, want %d; or they differ", len(got), len(want))
					}
				}
			})
		}
	}
	if len(r.failed) > 0 {
		t.Errorf("failed: %q", r.failed)
	}
}

func TestCombine(t *testing.T) {
	same := func(a, b []byte) bool {
		return combine(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b))) == crc32.ChecksumIEEE(append(slices.Clone(a), b...))
	}
	if err := quick.Check(same, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
	big := bytes.Repeat([]byte("some text "), 1<<20)
	if !same([]byte("x"), big) || !same(big, nil) || !same(nil, big) {
		t.Error("a long or an empty text has another sum")
	}
}

func TestHeadAndNames(t *testing.T) {
	r := newRig(t, 30)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/metrics", nil))
	if w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Content-Type") == "" {
		t.Errorf("HEAD: got %d, %d bytes, headers %v", w.Code, w.Body.Len(), w.Header())
	}
	for _, handler := range []http.Handler{r, r.plain} {
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics?name[]=test_family_1_total&name[]=test_seconds", nil))
		if got := strings.Count(w.Body.String(), "# TYPE"); got != 2 {
			t.Errorf("names: got %d families, want 2", got)
		}
	}
}

// A sample that stands twice is left out; all others stay, and the error is told.
func TestDuplicate(t *testing.T) {
	r := newRig(t, 30)
	ms, ds := metrics(9, 2, 10)
	r.blocks = append(r.blocks, NewBlock(append(ms, ms[0]), ds))
	w := get(r, "", "")
	if got, want := strings.Count(w.Body.String(), "\ntest_family_"), 40; w.Code != 200 || got != want {
		t.Errorf("got status %d and %d samples, want 200 and %d", w.Code, got, want)
	}
	if len(r.failed) != 1 || !strings.HasPrefix(r.failed[0], "gathering: ") {
		t.Errorf("failed: got %q", r.failed)
	}
}

func TestNothing(t *testing.T) {
	r := newRig(t, 0)
	r.blocks = nil
	for _, coding := range []string{"", "gzip", "zstd"} {
		if got := decompress(t, get(r, "", coding)); !bytes.HasPrefix(got, []byte("# HELP test_seconds")) {
			t.Errorf("%s: got %q", coding, got)
		}
	}
}

func TestAsked(t *testing.T) {
	r := newRig(t, 30)
	get(r, "", "gzip")
	get(r, "", "gzip")
	want := []Form{{Format: expfmt.FmtText, Coding: Gzip}}
	if got := r.Asked(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	b := NewBlock(metrics(0, 4, 100))
	if b.Size() != 0 {
		t.Errorf("a new block holds %d bytes", b.Size())
	}
	if err := b.Prepare(want[0]); err != nil || b.Size() == 0 {
		t.Errorf("prepared: %v, %d bytes", err, b.Size())
	}
}

// discard is a client whose answers cost nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkScrape serves the same metrics in three ways: as the plain registry
// does, from blocks, and as ready bytes (the floor). The exporter's own metrics
// are those of a Go process.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000, 200_000} {
		r := newRig(b, n)
		own := prometheus.NewRegistry()
		own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		data := prometheus.NewRegistry()
		for _, block := range r.blocks {
			data.MustRegister(block)
		}
		r.Own = own
		plain := promhttp.HandlerFor(prometheus.Gatherers{own, data}, HandlerOptions())
		accept := acceptHeaders()["Prometheus 2.42"]
		ready := get(r, accept, "gzip").Body.Bytes()
		floor := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(ready) })
		for _, way := range []struct {
			name string
			http.Handler
		}{{"plain", plain}, {"blocks", r}, {"floor", floor}} {
			b.Run(fmt.Sprintf("series=%d/%s", n, way.name), func(b *testing.B) {
				req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				req.Header.Set("Accept", accept)
				req.Header.Set("Accept-Encoding", "gzip")
				b.ReportAllocs()
				for b.Loop() {
					way.ServeHTTP(discard{http.Header{}}, req)
				}
			})
		}
	}
}

// BenchmarkEncode makes a block ready in one form.
func BenchmarkEncode(b *testing.B) {
	ms, ds := metrics(0, 9, 60_000)
	for _, f := range []Form{{expfmt.FmtOpenMetrics_1_0_0, Gzip}, {expfmt.FmtOpenMetrics_1_0_0, Zstd}, {expfmt.FmtProtoDelim, Gzip}} {
		b.Run(string(f.Format)+"/"+string(f.Coding), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := NewBlock(ms, ds).Prepare(f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
