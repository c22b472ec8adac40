package runner

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestInvalidItemsLogged logs each distinct cause once, with the item and the path of
// the field, until it is gone.
func TestInvalidItemsLogged(t *testing.T) {
	withHarness(t, func(_ *testing.T, h *harness) {
		keys := func(items ...string) {
			h.Override("/ssh-keys", simtest.Reply(http.StatusOK, nil, `{"data":[`+strings.Join(items, ",")+`]}`))
			h.runFor(3 * time.Minute)
		}
		key := func(id, name, created string) string {
			return `{"id":"` + id + `","fingerprint":"f","name":` + name + `,"created_at":"` + created + `"}`
		}
		good, named := key("a", `"n"`, "2026-01-01"), func(id string) string { return key(id, "1", "2026-01-01") }
		warn := func(item, field, problem string, items int) logLine {
			return logLine{"level=warn " + loggedBy(resource("ssh_keys")) + fmt.Sprintf(`"invalid item" item=%s field=%s problem=%q items=%d`, item, field, problem, items)}
		}
		h.run(configure(time.Minute, time.Hour, "ssh_keys"))
		keys(good)
		h.assertLog()
		keys(good, named("b"), named("c"))
		h.assertLog(warn("b", "name", "not a string", 2))
		keys(good, named("d"), key("e", `"n"`, "soon"), key("f", `"n"`, ""))
		h.assertLog(warn("e", "created_at", "not an ISO 8601 time from 1970 on", 3))
		h.assertEqual("invalid_items", h.values(collectorInvalid), map[string]float64{"ssh_keys main": 3})
		h.assertEqual("causes", h.set.Health()[0].Invalid.Causes, []rentalapi.Cause{
			{Item: "d", FieldError: rentalapi.FieldError{Field: "name", Problem: "not a string"}},
			{Item: "e", FieldError: rentalapi.FieldError{Field: "created_at", Problem: "not an ISO 8601 time from 1970 on"}},
		})
		keys(good, named(strings.Repeat("l", 2000)))
		h.assertLog()
		keys(good)
		h.assertLog(logLine{"level=info", loggedBy(resource("ssh_keys")) + `"all items valid again"`})
		keys(good, named(strings.Repeat("l", 2000)))
		h.assertLog(warn(strings.Repeat("l", 64)+"...", "name", "not a string", 1))
	})
}

// TestManyCausesLogged has more causes than are logged: always the same ten.
func TestManyCausesLogged(t *testing.T) {
	for name, state := range map[string]string{"wrong type": "5", "empty": `""`} {
		subtest(t, name, func(t *testing.T, h *harness) {
			var components []string
			for i := range 40 {
				components = append(components, fmt.Sprintf(`"c%02d":%s`, i, state))
			}
			h.Override("/status", simtest.Reply(http.StatusOK, nil, `{"data":{"locations":{"fra":{"components":{`+strings.Join(components, ",")+`}}}}}`))
			h.run(configure(time.Minute, time.Hour, "status"))
			h.runFor(10 * time.Minute)
			h.assertEqual("lines of ten minutes", len(h.log.Take(t)), 10)
			h.assertEqual("invalid_items", h.values(collectorInvalid), map[string]float64{"status ": 41}) // and what is missing besides
		})
	}
}
