package runner

import (
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestUnusableResponse has a fault at one endpoint from the start until it is repaired: success, counted
// errors, the log, and that all else is unaffected. Package rentalapi tests every other fault.
func TestUnusableResponse(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		victim := resource("status")
		h.Inject(simtest.Fault{Path: "/status", Handler: simtest.Reply(http.StatusOK, nil, `{"data":{}}`)})
		h.run(configure(time.Minute, 10*time.Minute))
		h.runFor(time.Minute)
		during, counted := h.data(), h.values("exporter_api_errors_total")
		maps.DeleteFunc(counted, func(_ string, n float64) bool { return n == 0 })
		h.assertEqual("errors", counted, map[string]float64{"/status incomplete": float64(h.CountByPath(0)["/status"])})
		h.assertSuccess(victim)
		h.log.Assert(t, `level=error collector=status msg="collector failed" err="data.locations: none valid: response is incomplete"`)
		h.RemoveAll()
		h.runFor(2 * time.Minute)
		h.assertEqual("data during the fault", during, without(h.data(), families(victim)...))
		h.assertSuccess()
		for _, c := range h.set.Health() { // the failure is kept
			if failed := c.Collector == "status"; failed != (c.Failure != nil) || failed && (c.Err != nil || !c.FailedAt.Before(c.LastSuccess) || c.FailedAt.IsZero()) {
				t.Errorf("%s: failure %v at %s, last success %s, error %v", c.Collector, c.Failure, c.FailedAt, c.LastSuccess, c.Err)
			}
		}
		h.log.Assert(t, `level=info collector=status msg="collector recovered"`)
	})
}

// TestStateLogger asserts that a cause of failure is logged once until the collector
// recovers, and a cause of invalid items once until it is gone.
func TestStateLogger(t *testing.T) {
	invalid := func(n int, causes ...rentalapi.FieldError) rentalapi.Invalid {
		return rentalapi.Invalid{Items: n, Causes: causes}
	}
	wrong := rentalapi.FieldError{Item: "b", Field: "name", Problem: "not a string"}
	other := rentalapi.FieldError{Item: "d", Field: "name", Problem: "not a string"}
	soon := rentalapi.FieldError{Item: "e", Field: "created_at", Problem: "not a time"}
	broken := &rentalapi.Error{Reason: rentalapi.Status, Err: errors.New("status 500")}
	backoff := &rentalapi.Error{Reason: rentalapi.Unavailable, Err: errors.New("no request made")}
	var log simtest.Log
	l := stateLogger{logger: &log}
	for _, step := range []struct {
		invalid rentalapi.Invalid
		err     error
		want    []string
	}{
		{},
		{err: broken, want: []string{`level=error msg="collector failed" err="status 500"`}},
		{err: broken},
		{err: backoff, want: []string{`level=error msg="collector failed" err="no request made"`}},
		{err: broken},
		{want: []string{`level=info msg="collector recovered"`}},
		{err: broken, want: []string{`level=error msg="collector failed" err="status 500"`}},
		{want: []string{`level=info msg="collector recovered"`}},

		{invalid: invalid(2, wrong), want: []string{`level=warn msg="invalid item" item=b field=name problem="not a string" items=2`}},
		{invalid: invalid(3, other, soon), want: []string{`item=e field=created_at problem="not a time" items=3`}},
		{want: []string{`level=info msg="all items valid again"`}},
		{invalid: invalid(1, other), want: []string{`msg="invalid item" item=d`}},
	} {
		if step.err != nil {
			l.recordFailure(step.err)
		} else {
			l.recordSuccess(step.invalid)
		}
		log.Assert(t, step.want...)
	}
}
