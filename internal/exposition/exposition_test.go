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
	"strconv"
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
	"github.com/prometheus/procfs"
	"google.golang.org/protobuf/proto"

	"server_rental_exporter/internal/process"
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

// collected is a block as any registry takes it.
type collected struct{ *Block }

func (c collected) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

func (c collected) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.metrics {
		ch <- m
	}
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
		data.MustRegister(collected{b})
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

// compare asks both ways the same and compares the answers, sample by sample.
func (r *rig) compare(t *testing.T, accept, coding string) {
	t.Helper()
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
	if len(r.failed) > 0 {
		t.Errorf("failed: %q", r.failed)
	}
}

// TestSameAsPlain compares each answer with that of the plain registry.
func TestSameAsPlain(t *testing.T) {
	r := newRig(t, 300)
	for name, accept := range acceptHeaders() {
		for _, coding := range []string{"", "gzip", "zstd", "gzip, deflate, br", "zstd;q=0.9, gzip;q=0.1", "*", "br", "identity;q=0.1, gzip;q=0"} {
			t.Run(name+" "+coding, func(t *testing.T) {
				for range 2 { // the second time from what was kept
					r.compare(t, accept, coding)
				}
			})
		}
	}
}

// TestLargeSameAsPlain compares answers of some megabytes, made all at once.
func TestLargeSameAsPlain(t *testing.T) {
	r := newRig(t, 30_000)
	for _, b := range r.blocks {
		var forms []Form
		for _, format := range Formats() {
			forms = append(forms, Form{format, Identity}, Form{format, Gzip}, Form{format, Zstd})
		}
		b.Prepare(forms...)
	}
	for _, accept := range []string{"Prometheus 2.42", "2.42 with natives", "vmagent"} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			t.Run(accept+" "+coding, func(t *testing.T) { r.compare(t, acceptHeaders()[accept], coding) })
		}
	}
}

// leaving is a client that leaves after some bytes.
type leaving struct {
	discard
	left int
}

func (l *leaving) Write(p []byte) (int, error) {
	if l.left < len(p) {
		return l.left, io.ErrClosedPipe
	}
	l.left -= len(p)
	return len(p), nil
}

// Clients that leave in the middle are no fault, and harm no one who comes after them.
func TestClientLeaves(t *testing.T) {
	r := newRig(t, 3_000)
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		for left := 1; left < 1<<20; left *= 4 {
			req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			req.Header.Set("Accept-Encoding", coding)
			r.ServeHTTP(&leaving{discard{http.Header{}}, left}, req)
		}
		r.compare(t, "", coding)
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
	b.Prepare(want...)
	if b.Size() == 0 {
		t.Error("prepared, and holds nothing")
	}
}

// discard is a client whose answers cost nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkScrape serves the same metrics in three ways: as the plain registry
// does, from blocks, and as ready bytes (the floor). The exporter's own metrics
// are those of a Go process, in the plain way as client_golang collects them.
func BenchmarkScrape(b *testing.B) {
	lean, err := process.New()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{500, 5_000, 50_000, 200_000} {
		r := newRig(b, n)
		stock, own, data := prometheus.NewRegistry(), prometheus.NewRegistry(), prometheus.NewRegistry()
		own.MustRegister(collectors.NewGoCollector(), lean)
		stock.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		for _, block := range r.blocks {
			data.MustRegister(collected{block})
		}
		r.Own = own
		ready := get(r, acceptHeaders()["Prometheus 2.42"], "gzip").Body.Bytes()
		for _, way := range []struct {
			name string
			http.Handler
		}{
			{"plain", promhttp.HandlerFor(prometheus.Gatherers{stock, data}, HandlerOptions())},
			{"blocks", r},
			{"floor", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(ready)))
				_, _ = w.Write(ready)
			})},
		} {
			b.Run(fmt.Sprintf("series=%d/%s", n, way.name), func(b *testing.B) {
				b.Run("handler", func(b *testing.B) { handled(b, way) })
				b.Run("socket", func(b *testing.B) { fetched(b, way) })
			})
		}
	}
}

// asPrometheus is a request as Prometheus makes it.
func asPrometheus(b *testing.B, url string) *http.Request {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", acceptHeaders()["Prometheus 2.42"])
	r.Header.Set("Accept-Encoding", "gzip")
	return r
}

// handled measures a handler alone.
func handled(b *testing.B, h http.Handler) {
	r := asPrometheus(b, "http://example/metrics")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}

// fetched measures a handler over loopback, with a client that reads and forgets.
func fetched(b *testing.B, h http.Handler) {
	server := httptest.NewServer(h)
	defer server.Close()
	client, r := server.Client(), asPrometheus(b, server.URL)
	before := processorTime(b)
	for b.Loop() {
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
	b.ReportMetric((processorTime(b)-before)*1000/float64(b.N), "cpu-ms/op")
}

// processorTime is what this process has used, in seconds.
func processorTime(b *testing.B) float64 {
	b.Helper()
	self, err := procfs.Self()
	if err != nil {
		b.Fatal(err)
	}
	stat, err := self.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return stat.CPUTime()
}

// BenchmarkEncode makes a block ready in one form.
func BenchmarkEncode(b *testing.B) {
	ms, ds := metrics(0, 9, 60_000)
	for _, f := range []Form{{expfmt.FmtOpenMetrics_1_0_0, Gzip}, {expfmt.FmtOpenMetrics_1_0_0, Zstd}, {expfmt.FmtProtoDelim, Gzip}} {
		b.Run(string(f.Format)+"/"+string(f.Coding), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewBlock(ms, ds).Prepare(f)
			}
		})
	}
}
