package ntfy_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/ntfy"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

func TestHandler(t *testing.T) {
	for notification, want := range map[string]string{
		`{"alerts": [{"summary": "Plan p is sold out."}, {"summary": "Plan q is sold out."}]}`: "200: Plan p is sold out.\nPlan q is sold out.",
		"nothing": "400: invalid character 'o' in literal null (expecting 'u')",
		`{"alerts": [{"summary": "` + strings.Repeat("s", 4096) + `"}]}`: "400: message: has 4097 bytes, more than 4096",
		`{"groupKey": "` + strings.Repeat("g", 32<<10) + `"}`:            "400: http: request body too large",
	} {
		w, got := httptest.NewRecorder(), ""
		r := httptest.NewRequest(http.MethodPost, "/TOPIC?m="+url.QueryEscape("{{range .alerts}}{{.summary}}\n{{end}}"), strings.NewReader(notification))
		ntfy.Handler(func(message string, err error) {
			got = message
			if err != nil {
				got = err.Error()
			}
		}).ServeHTTP(w, r)
		simtest.AssertEqual(t, want, w.Result().Status[:3]+": "+got, want)
	}
}
