package main

import (
	"compress/gzip"
	"io"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const (
	textFormat  = "text/plain; version=0.0.4; charset=utf-8"
	openFormat  = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	protoFormat = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// All formats show the same, whether compressed or not.
func TestFormats(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	p := ready(t, "--config.file="+a.configFile(t, t.TempDir(), map[string]string{"main": mainToken, "lab": labToken}, ""))
	want := p.scrape()

	for _, tc := range []struct {
		name, accept, encoding string
		wantType, wantEncoding string
	}{
		{"text", "text/plain;version=0.0.4", "", textFormat, ""},
		{"text for a browser", "text/html,*/*;q=0.8", "", textFormat, ""},
		{"text, gzip", "text/plain;version=0.0.4", "gzip", textFormat, "gzip"},
		{"text, zstd", "text/plain;version=0.0.4", "zstd", textFormat, "zstd"},
		{"text, unknown compression", "text/plain;version=0.0.4", "br", textFormat, ""},
		{"protobuf", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "", protoFormat, ""},
		{"protobuf, gzip", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "gzip", protoFormat, "gzip"},
		{"protobuf, zstd", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "zstd", protoFormat, "zstd"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := p.get("/metrics", "Accept", tc.accept, "Accept-Encoding", tc.encoding)
			if heads := []string{contentType(got), got.Header.Get("Content-Encoding")}; got.Status != 200 ||
				!reflect.DeepEqual(heads, []string{tc.wantType, tc.wantEncoding}) {
				t.Fatalf("got status %d, %q; want 200, %q", got.Status, heads, []string{tc.wantType, tc.wantEncoding})
			}
			page := parseExposition(t, unpack(t, got), tc.wantType)
			wantSame(t, page, want)
			const histogram = "server_rental_exporter_api_request_duration_seconds"
			if !reflect.DeepEqual(page.classic, want.classic) || !strings.Contains(strings.Join(page.classic, " "), histogram) {
				t.Errorf("classic histograms: got %v, want %v", page.classic, want.classic)
			}
			if native := tc.wantType == protoFormat; native != (strings.Join(page.native, " ") == histogram) {
				t.Errorf("native histograms: got %v", page.native)
			}
		})
	}
	t.Run("HEAD", func(t *testing.T) {
		got, err := p.send("HEAD", p.url+"/metrics", "Accept", "text/plain;version=0.0.4")
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != 200 || got.Body != "" || contentType(got) != textFormat {
			t.Errorf("got status %d, type %q, %d bytes; want 200, %q, none", got.Status, contentType(got), len(got.Body), textFormat)
		}
	})
	t.Run("OpenMetrics", func(t *testing.T) {
		got := p.get("/metrics", "Accept", "application/openmetrics-text;version=1.0.0")
		if contentType(got) != openFormat {
			t.Fatalf("got %q, want %q", contentType(got), openFormat)
		}
		if !strings.HasSuffix(got.Body, "\n# EOF\n") || strings.Count(got.Body, "# EOF") != 1 {
			t.Errorf("does not end with one # EOF: ...%q", got.Body[max(0, len(got.Body)-200):])
		}
		text := p.get("/metrics", "Accept", "text/plain;version=0.0.4")
		if got, want := steady(samples(t, got.Body)), steady(samples(t, text.Body)); !reflect.DeepEqual(got, want) {
			t.Errorf("samples differ from those of the text format:\ngot  %v\nwant %v", got, want)
		}
		types := map[string]string{} // here a counter's family goes without _total
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (server_rental_\S+) (\S+)$`).FindAllStringSubmatch(got.Body, -1) {
			if m[2] == "counter" {
				m[1] += "_total"
			}
			types[m[1]] = m[2]
		}
		wantTypes := map[string]string{}
		for name, f := range want.families {
			if strings.HasPrefix(name, "server_rental_") {
				wantTypes[name] = f.Type
			}
		}
		if !reflect.DeepEqual(types, wantTypes) {
			t.Errorf("types:\ngot  %v\nwant %v", types, wantTypes)
		}
	})
}

// A scraper may ask for single metrics by name.
func TestSelectedMetrics(t *testing.T) {
	t.Parallel()
	p := ready(t, "--demo")
	whole := p.scrape()
	got := p.get("/metrics?name[]=server_rental_plan_in_stock&name[]=server_rental_exporter_build_info")
	page := parseExposition(t, got.Body, got.Header.Get("Content-Type"))
	want := map[string]family{}
	for _, name := range []string{"server_rental_plan_in_stock", "server_rental_exporter_build_info"} {
		want[name] = whole.families[name]
	}
	if !reflect.DeepEqual(page.families, want) {
		t.Errorf("families:\ngot  %v\nwant %v", page.families, want)
	}
}

// contentType is that of an answer, without the escaping scheme: no name here
// needs escaping, so that all schemes are the same.
func contentType(r reply) string {
	return escaping.ReplaceAllString(r.Header.Get("Content-Type"), "")
}

var escaping = regexp.MustCompile(`; *escaping=[a-z0-9-]+`)

// wantSame compares families and values of the exporter's own metrics.
func wantSame(t *testing.T, got, want exposed) {
	t.Helper()
	own := func(name string, _ family) bool { return !strings.HasPrefix(name, "server_rental_") }
	gotFamilies, wantFamilies := maps.Clone(got.families), maps.Clone(want.families)
	maps.DeleteFunc(gotFamilies, own)
	maps.DeleteFunc(wantFamilies, own)
	if !reflect.DeepEqual(gotFamilies, wantFamilies) {
		t.Errorf("families:\ngot  %v\nwant %v", gotFamilies, wantFamilies)
	}
	if got, want := steady(got.with("server_rental_")), steady(want.with("server_rental_")); !reflect.DeepEqual(got, want) {
		t.Errorf("values:\ngot  %v\nwant %v", got, want)
	}
}

// steady leaves out what a scrape itself changes: each format that was asked for
// is kept.
func steady(values map[string]float64) map[string]float64 {
	maps.DeleteFunc(values, func(series string, _ float64) bool {
		return strings.HasPrefix(series, "server_rental_exporter_exposition_bytes")
	})
	return values
}

func unpack(t *testing.T, r reply) string {
	t.Helper()
	var reader io.Reader = strings.NewReader(r.Body)
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		z, err := gzip.NewReader(reader)
		if err != nil {
			t.Fatal(err)
		}
		reader = z
	case "zstd":
		z, err := zstd.NewReader(reader)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		reader = z
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

var bound = regexp.MustCompile(`le="([^"]*)"`)

// samples are the exporter's own samples of a page in any text format.
func samples(t *testing.T, page string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "server_rental_") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("not a sample: %s", line)
		}
		// The formats write the same bound as 1 and as 1.0.
		series := bound.ReplaceAllStringFunc(line[:at], func(le string) string {
			n, err := strconv.ParseFloat(bound.FindStringSubmatch(le)[1], 64)
			if err != nil {
				t.Fatalf("not a bound: %s", line)
			}
			return "le=" + strconv.FormatFloat(n, 'g', -1, 64)
		})
		found[series] = value
	}
	return found
}
