package exposition

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
)

// Encoding is a content coding of HTTP.
type Encoding string

// The encodings that are offered.
const (
	Identity Encoding = "identity"
	Gzip     Encoding = "gzip"
)

// Variant is one form of the response: a format and a content coding.
type Variant struct {
	// Format is one of Formats, without an escaping scheme: no name of the exporter
	// needs escaping, so that all schemes give the same bytes.
	Format   expfmt.Format
	Encoding Encoding
}

// Formats returns the formats that are offered.
func Formats() []expfmt.Format {
	return []expfmt.Format{expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1, expfmt.FmtProtoDelim, expfmt.FmtText}
}

// negotiate returns the variant of a response, and the content type with its
// parameters. Both versions of OpenMetrics are written in the same way.
func negotiate(h http.Header) (Variant, string) {
	accepted := expfmt.NegotiateAccept(h, Formats()...)
	v := Variant{Format: expfmt.FmtText, Encoding: negotiateEncoding(h.Values("Accept-Encoding"))}
	switch accepted.FormatType() {
	case expfmt.TypeOpenMetrics:
		v.Format = expfmt.FmtOpenMetrics_1_0_0
	case expfmt.TypeProtoDelim:
		v.Format = expfmt.FmtProtoDelim
	}
	return v, string(accepted)
}

// negotiateEncoding returns the encoding that a client prefers; Identity wins only
// where it is given a higher quality.
func negotiateEncoding(accept []string) Encoding {
	quality := map[string]float64{}
	for _, value := range accept {
		for element := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(element, ";")
			q := 1.0
			if _, v, ok := strings.Cut(params, "q="); ok {
				q, _ = strconv.ParseFloat(strings.TrimSpace(v), 64) // 0 where it is not a number
			}
			quality[strings.ToLower(strings.TrimSpace(name))] = q
		}
	}
	gzip, named := quality[string(Gzip)]
	if !named {
		gzip = quality["*"]
	}
	if gzip > 0 && gzip >= quality[string(Identity)] {
		return Gzip
	}
	return Identity
}
