package exposition

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Whatever a scraper asks for, it gets one of the forms that are offered, and
// compressed only as it said.
func FuzzNegotiate(f *testing.F) {
	for _, s := range [][2]string{
		{"text/plain;version=0.0.4", "gzip"},
		{"*/*;q=0.1", "zstd;q=0.5, gzip;q=0.5"},
		{"application/openmetrics-text", "*;q=0"},
		{"", "gzip;q=0"},
		{"application/vnd.google.protobuf;encoding=delimited;proto=io.prometheus.client.MetricFamily", "br, *"},
		{";;,,", "gzip;q=NaN"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, accept, encoding string) {
		got := negotiateCoding([]string{encoding})
		if !slices.Contains([]Coding{Identity, Gzip, Zstd}, got) {
			t.Errorf("%q: got coding %q", encoding, got)
		}
		if known := strings.ToLower(encoding); got != Identity && !strings.Contains(known, string(got)) {
			t.Errorf("%q: got %s, which was not asked for", encoding, got)
		}
		if got, _ := negotiateFormat(http.Header{"Accept": {accept}}); !slices.Contains(Formats(), got) {
			t.Errorf("%q: got format %q", accept, got)
		}
	})
}
