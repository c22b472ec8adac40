package campaign_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// values are samples by series; of a histogram its count.
type values map[string]float64

// with are the samples of one family.
func (v values) with(family string) values {
	found := values{}
	for s, x := range v {
		if familyOf(s) == family {
			found[s] = x
		}
	}
	return found
}

func familyOf(series string) string {
	name, _, _ := strings.Cut(series, "{")
	return name
}

// series writes a series in the one way in which this package writes it: labels
// in order of their names.
func series(name string, labels ...string) string {
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i+1 < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+"="+strconv.Quote(labels[i+1]))
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

var labelPair = regexp.MustCompile(`([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"`)

// label reads a label of a series written by series.
func label(s, name string) string {
	for _, before := range []string{"{", ","} {
		if _, after, found := strings.Cut(s, before+name+"="); found {
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return ""
			}
			v, _ := strconv.Unquote(quoted)
			return v
		}
	}
	return ""
}

const (
	asText  = "text/plain;version=0.0.4"
	asOpen  = "application/openmetrics-text;version=1.0.0"
	asProto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// scrape asks a handler in a format and coding and returns what it shows. Anything
// but a page that can be parsed to its end fails the test.
func scrape(t testing.TB, h http.Handler, accept, coding string) values {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", coding)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	v, err := readPage(w.Code, w.Header(), w.Body)
	if err != nil {
		t.Errorf("/metrics: %v", err)
	}
	return v
}

func readPage(status int, header http.Header, packed io.Reader) (values, error) {
	raw, err := unpack(header.Get("Content-Encoding"), packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", header.Get("Content-Encoding"), err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("got status %d, want 200: %.500s", status, raw)
	}
	if strings.HasPrefix(header.Get("Content-Type"), "application/openmetrics-text") {
		return parseOpen(raw)
	}
	return parse(raw, expfmt.ResponseFormat(header))
}

func unpack(coding string, r io.Reader) ([]byte, error) {
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	return io.ReadAll(r)
}

func parse(raw []byte, f expfmt.Format) (values, error) {
	v := values{}
	for dec := expfmt.NewDecoder(bytes.NewReader(raw), f); ; {
		var family dto.MetricFamily
		err := dec.Decode(&family)
		if errors.Is(err, io.EOF) {
			return v, nil
		}
		if err != nil {
			return nil, err
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			s := series(family.GetName(), labels...)
			if _, twice := v[s]; twice {
				return nil, fmt.Errorf("twice: %s", s)
			}
			v[s] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue() + float64(m.GetHistogram().GetSampleCount()) +
				m.GetSummary().GetSampleSum()
		}
	}
}

var (
	openSample = regexp.MustCompile(`^([a-z_][a-z0-9_]*)(\{(?:[a-z_][a-z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (\S+)$`)
	openMeta   = regexp.MustCompile(`^# (HELP|TYPE|UNIT) [a-z_][a-z0-9_]* `)
)

// parseOpen reads OpenMetrics, of which no parser is among the dependencies: it
// checks each line and reads the samples.
func parseOpen(raw []byte) (values, error) {
	body, ended := bytes.CutSuffix(raw, []byte("# EOF\n"))
	if !ended {
		return nil, fmt.Errorf("does not end in # EOF: %.200q", raw[max(0, len(raw)-200):])
	}
	v := values{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSuffix(line, "\n")
		if openMeta.MatchString(line) {
			continue
		}
		m := openSample.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("not a line of OpenMetrics: %q", line)
		}
		x, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("not a value: %q", line)
		}
		var labels []string
		for _, p := range labelPair.FindAllStringSubmatch(m[2], -1) {
			text, err := strconv.Unquote(`"` + p[2] + `"`)
			if err != nil {
				return nil, fmt.Errorf("label: %q: %w", line, err)
			}
			labels = append(labels, p[1], text)
		}
		s := series(m[1], labels...)
		if _, twice := v[s]; twice {
			return nil, fmt.Errorf("twice: %s", s)
		}
		v[s] = x
	}
	return v, nil
}

// difference says how two sets of samples differ, or nothing.
func difference(got, want values) string {
	var lines []string
	for s, g := range got {
		if w, ok := want[s]; !ok {
			lines = append(lines, fmt.Sprintf("%s: got %v, want none", s, g))
		} else if g != w {
			lines = append(lines, fmt.Sprintf("%s: got %v, want %v", s, g, w))
		}
	}
	for s, w := range want {
		if _, ok := got[s]; !ok {
			lines = append(lines, fmt.Sprintf("%s: got none, want %v", s, w))
		}
	}
	slices.Sort(lines)
	if len(lines) > 8 {
		lines = append(lines[:8], fmt.Sprintf("and %d more", len(lines)-8))
	}
	return strings.Join(lines, "\n")
}

// equal tells whether two sets of samples are the same.
func equal(a, b values) bool { return maps.Equal(a, b) }
