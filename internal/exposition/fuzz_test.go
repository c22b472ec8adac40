package exposition

import (
	"net/http"
	"slices"
	"testing"
)

// Whatever a scraper asks for, it gets one of the forms that are offered, and
// never one that it refused by name.
func FuzzNegotiate(f *testing.F) {
	for _, s := range [][2]string{
		{"text/plain;version=0.0.4", "gzip"}, {"*/*;q=0.1", "zstd;q=0.5, gzip;q=0.5"}, {"application/openmetrics-text", "*;q=0"},
		{"", "gzip;q=0"}, {"application/vnd.google.protobuf;encoding=delimited;proto=io.prometheus.client.MetricFamily", "br, *"}, {";;,,", "gzip;q=NaN"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, accept, encoding string) {
		if got := negotiateCoding([]string{encoding}); !slices.Contains([]Coding{Identity, Gzip, Zstd}, got) {
			t.Errorf("%q: got coding %q", encoding, got)
		}
		for _, c := range []Coding{Gzip, Zstd} {
			if got := negotiateCoding([]string{string(c) + ";q=0", encoding + ";q=0"}); got == c {
				t.Errorf("%q: got %s, which was refused", encoding, c)
			}
		}
		if got, _ := negotiateFormat(http.Header{"Accept": {accept}}); !slices.Contains(Formats(), got) {
			t.Errorf("%q: got format %q", accept, got)
		}
	})
}
