package runner

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestUnusableResponses has a way to fail for each reason, found by the client or by the
// collector, from the start until it is repaired: success, counted errors, the log, and
// that all else is unaffected. Package rentalapi tests every other fault.
func TestUnusableResponses(t *testing.T) {
	text := func(body string) *simtest.Fault {
		return &simtest.Fault{Handler: simtest.Reply(http.StatusOK, nil, body)}
	}
	status := func(code int) *simtest.Fault {
		return &simtest.Fault{Kind: simtest.Respond, Status: code, Header: http.Header{"Retry-After": {"2"}}}
	}
	everywhere := collector.Resources()
	for _, c := range []struct {
		name    string
		fault   *simtest.Fault // nil: the API is down
		victims []collector.Resource
		reason  rentalapi.Reason
		logged  string // after the endpoint
	}{
		{"500", status(500), everywhere, rentalapi.Status, "status 500"},
		{"API down", nil, everywhere, rentalapi.Connection, "connection refused"},
		{"no response", &simtest.Fault{Kind: simtest.Hang}, everywhere, rentalapi.Timeout, "no response within 10s"},
		{"empty object", text(`{}`), everywhere, rentalapi.Decode, "data: "},

		{"404", status(404), []collector.Resource{resource("os")}, rentalapi.Status, "status 404: not_found; disable the collector if the API does not have this endpoint"},
		{"401", status(401), []collector.Resource{resource("servers")}, rentalapi.Unauthorized, "status 401: "},
		{"429", status(429), []collector.Resource{resource("plans")}, rentalapi.RateLimited, "status 429: rate_limited"},
		{"503", status(503), []collector.Resource{resource("account")}, rentalapi.Unavailable, "status 503: unavailable"},
		{"half a page", &simtest.Fault{Kind: simtest.Truncated}, []collector.Resource{resource("transactions")}, rentalapi.Connection, "unexpected EOF"},
		{"endless", &simtest.Fault{Kind: simtest.Endless}, []collector.Resource{resource("locations")}, rentalapi.TooLarge, "response is too large"},
		{"shortened list", text(`{"data":[],"meta":{"count":15}}`), []collector.Resource{resource("ssh_keys")}, rentalapi.Incomplete, "data: 0 items, but meta.count is 15"},
		{"account without id", text(`{"data":{"name":"main"}}`), []collector.Resource{resource("account")}, rentalapi.Incomplete, "data.id: missing"},
		{"status without locations", text(`{"data":{}}`), []collector.Resource{resource("status")}, rentalapi.Incomplete, "data.locations: missing or empty"},
		{"too many samples", text(offers(200, 800)), []collector.Resource{resource("plans")}, rentalapi.TooLarge, "samples"},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			settings := configure(time.Minute, 10*time.Minute)
			want := h.once(settings)
			h.reset()
			var absent []string
			var failures, recoveries []logLine
			wantErrors := map[string]bool{}
			repairs := []func(){func() { h.down.Store(false) }}
			h.down.Store(c.fault == nil)
			for _, r := range c.victims {
				absent = append(absent, families(r)...)
				failures = append(failures, failed(r, r.Endpoint+": ", c.logged))
				recoveries = append(recoveries, recovered(r))
				wantErrors[r.Endpoint+" "+string(c.reason)] = true
				if c.fault != nil {
					f := *c.fault
					f.Path = r.Endpoint
					repairs = append(repairs, h.Inject(f))
				}
			}
			before := len(h.Requests())
			h.run(settings)
			h.runFor(150 * time.Second)

			h.assertEqual("data", h.data(), without(want, absent...))
			h.assertSuccess(nil, c.victims...)
			h.assertErrors(wantErrors, before)
			h.assertLog(failures...)
			for series := range h.scrape().WithPrefix(collectorInvalid.Name + "{") {
				if slices.ContainsFunc(c.victims, func(r collector.Resource) bool { return r.Name == simtest.Label(series, "collector") }) {
					t.Errorf("without any response: %s", series)
				}
			}
			for _, repair := range repairs {
				repair()
			}
			h.runFor(2 * time.Minute)
			h.assertEqual("data after recovery", h.data(), want)
			h.assertSuccess(nil)
			h.assertLog(recoveries...)
		})
	}
}

// assertErrors asserts that the errors are those that are wanted, by endpoint and
// reason, and that each request for the endpoint since the first ones counts as one.
func (h *harness) assertErrors(want map[string]bool, first int) {
	h.t.Helper()
	requests := map[string]float64{}
	for _, r := range h.Requests()[first:] {
		requests[r.Path]++
	}
	got := map[string]bool{}
	for key, n := range h.apiErrors() {
		got[key] = true
		if endpoint, _, _ := strings.Cut(key, " "); len(want) == 1 && n != requests[endpoint] {
			h.t.Errorf("%s: %v errors of %v requests", key, n, requests[endpoint])
		}
	}
	h.assertEqual("errors", got, want)
}

// offers returns a list of plans, each offered in many locations.
func offers(plans, locations int) string {
	places, list := make([]string, locations), make([]string, plans)
	for i := range places {
		places[i] = fmt.Sprintf(`"loc-%04d"`, i)
	}
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"%d","availability":{"locations":[%s]}}`, i, strings.Join(places, ","))
	}
	return `{"data":[` + strings.Join(list, ",") + `]}`
}
