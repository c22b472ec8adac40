package exposition

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
)

// variant is one form of the response.
type variant struct {
	// format is one of formats, without an escaping scheme: no name of the exporter
	// needs escaping, so that all schemes give the same bytes.
	format expfmt.Format
	gzip   bool
}

// formats returns the formats that are offered.
func formats() []expfmt.Format {
	return []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}
}

// negotiate returns the variant of a response, and the content type with its
// parameters. Both versions of OpenMetrics are written in the same way.
func negotiate(h http.Header) (variant, string) {
	accepted := expfmt.NegotiateAccept(h, formats()...)
	v := variant{expfmt.FmtText, prefersGzip(h.Values("Accept-Encoding"))}
	switch accepted.FormatType() {
	case expfmt.TypeOpenMetrics:
		v.format = expfmt.FmtOpenMetrics_1_0_0
	case expfmt.TypeProtoDelim:
		v.format = expfmt.FmtProtoDelim
	}
	return v, string(accepted)
}

// prefersGzip reports whether a client accepts gzip. No compression wins only if it has
// a higher quality.
func prefersGzip(accept []string) bool {
	quality := map[string]float64{}
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(element, ";")
			q := 1.0
			if _, v, ok := strings.Cut(params, "q="); ok {
				q, _ = strconv.ParseFloat(strings.TrimSpace(v), 64) // 0 if it is not a number
			}
			quality[strings.ToLower(strings.TrimSpace(name))] = q
		}
	}
	gzip, named := quality["gzip"]
	if !named {
		gzip = quality["*"]
	}
	return gzip > 0 && gzip >= quality["identity"]
}
