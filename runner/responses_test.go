package runner

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestUnusableResponses has a way to fail for each layer that finds it, from the start
// until it is repaired: success, counted errors, the log, and that all else is
// unaffected. Package rentalapi tests every other fault.
func TestUnusableResponses(t *testing.T) {
	text := func(body string) *simtest.Fault {
		return &simtest.Fault{Handler: simtest.Reply(http.StatusOK, nil, body)}
	}
	everywhere := collector.Resources()
	for _, c := range []struct {
		name    string
		fault   *simtest.Fault // nil: the API is down
		victims []collector.Resource
		reason  rentalapi.Reason
		logged  string // after the endpoint
	}{
		{"API down", nil, everywhere, rentalapi.Connection, "connection refused"},
		{"no response", &simtest.Fault{Kind: simtest.Hang}, everywhere, rentalapi.Timeout, "timed out before the response was complete"},
		{"404", &simtest.Fault{Status: http.StatusNotFound}, []collector.Resource{resource("os")}, rentalapi.Status, "status 404"},
		{"shortened list", text(`{"data":[],"meta":{"count":15}}`), []collector.Resource{resource("ssh_keys")}, rentalapi.Incomplete, "data: 0 items, but meta.count is 15"},
		{"status without locations", text(`{"data":{}}`), []collector.Resource{resource("status")}, rentalapi.Incomplete, "data.locations: missing or empty"},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			settings := configure(time.Minute, 10*time.Minute)
			want := h.once(settings)
			h.reset()
			var absent []string
			var failures, recoveries []string
			wantErrors := map[string]float64{}
			h.down.Store(c.fault == nil)
			for _, r := range c.victims {
				absent = append(absent, families(r)...)
				failures = append(failures, failed(r, r.Path+": ")+"*"+c.logged)
				recoveries = append(recoveries, recovered(r))
				if c.fault != nil {
					f := *c.fault
					f.Path = r.Path
					h.Inject(f)
				}
			}
			before := len(h.Requests())
			h.run(settings)
			h.runFor(time.Minute) // with more requests unanswered, the next ones would be spread

			h.assertEqual("data", h.data(), without(want, absent...))
			h.assertSuccess(c.victims...)
			got := map[string]float64{}
			for key, n := range h.values("exporter_api_errors_total") {
				if n > 0 {
					got[key] = n
				}
			}
			for _, r := range c.victims { // each request counts as one error
				key := r.Path + " " + string(c.reason)
				wantErrors[key] = float64(h.CountByPath(before)[r.Path])
				if c.fault == nil {
					wantErrors[key] = got[key] // without requests
				}
			}
			h.assertEqual("errors", got, wantErrors)
			h.log.Assert(t, failures...)
			h.down.Store(false)
			h.RemoveAll()
			h.runFor(2 * time.Minute)
			h.assertEqual("data after recovery", h.data(), want)
			h.assertSuccess()
			h.log.Assert(t, recoveries...)
		})
	}
}

// TestStateLogger asserts that a cause of failure is logged once until the collector
// recovers, and a cause of invalid items once until it is gone.
func TestStateLogger(t *testing.T) {
	wrong := rentalapi.FieldError{Field: "name", Problem: "not a string"}
	soon := rentalapi.FieldError{Field: "created_at", Problem: "not a time"}
	invalid := func(n int, causes ...rentalapi.Cause) rentalapi.Invalid {
		return rentalapi.Invalid{Items: n, Causes: causes}
	}
	broken := &rentalapi.Error{Path: "/plans", Reason: rentalapi.Status, Err: errors.New("status 500")}
	paused := &rentalapi.Error{Path: "/plans", Reason: rentalapi.Paused}
	var log simtest.Log
	l := stateLogger{logger: &log}
	for _, step := range []struct {
		invalid rentalapi.Invalid
		err     error
		want    []string
	}{
		{},
		{err: broken, want: []string{`level=error msg="collector failed" err="/plans: status 500"`}},
		{err: broken},
		{err: paused, want: []string{`level=error msg="collector failed" err=`}},
		{err: broken},
		{err: paused},
		{want: []string{`level=info msg="collector recovered"`}},
		{err: broken, want: []string{`level=error msg="collector failed" err="/plans: status 500"`}},
		{want: []string{`level=info msg="collector recovered"`}},

		{invalid: invalid(2, rentalapi.Cause{Item: "b", FieldError: wrong}), want: []string{`level=warn msg="invalid item" item=b field=name problem="not a string" items=2`}},
		{invalid: invalid(3, rentalapi.Cause{Item: "d", FieldError: wrong}, rentalapi.Cause{Item: "e", FieldError: soon}), want: []string{`item=e field=created_at problem="not a time" items=3`}},
		{invalid: invalid(1, rentalapi.Cause{Item: "c", FieldError: wrong})},
		{want: []string{`level=info msg="all items valid again"`}},
		{invalid: invalid(1, rentalapi.Cause{Item: "c", FieldError: wrong}), want: []string{`msg="invalid item" item=c`}},
	} {
		if step.err != nil {
			l.recordFailure(step.err)
		} else {
			l.recordSuccess(step.invalid)
		}
		log.Assert(t, step.want...)
	}
}
