package collector

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fields are those of a resource's items that stand for their kind; empty where
// it has none.
type fields struct{ text, number, count, date, object string }

func itemFields() map[string]fields {
	return map[string]fields{
		"plans":          {"name", "price.monthly.usd", "cpu.cores", "", "cpu"},
		"locations":      {"city", "coordinates.lat", "plans", "", "coordinates"},
		"os":             {"name", "license.usd_per_core_month", "typical_install_minutes", "", "license"},
		"topups":         {"coin", "amount.usd", "confirmations_needed", "created_at", "payment"},
		"transactions":   {"type", "amount.usd", "", "", "amount"},
		"configurations": {"hostname", "price.monthly.usd", "price.monthly.eur", "created_at", "price"},
		"ssh_keys":       {"name", "", "", "created_at", ""},
		"servers":        {"hostname", "price.monthly.usd", "price.monthly.usd", "renews_at", "price"},
	}
}

// badItems are items that cannot be understood, by what is wrong with them. Each
// is made from a good item that is not in the list yet.
func badItems(f fields, fresh func() map[string]any) map[string]any {
	with := func(path string, value any) any {
		if path == "" {
			return nil
		}
		item := fresh()
		at := item
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			inner, ok := at[key].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[key] = inner
			}
			at = inner
		}
		at[keys[len(keys)-1]] = value
		return item
	}
	deep := json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))
	all := map[string]any{
		"null":                  json.RawMessage("null"),
		"empty":                 map[string]any{},
		"an array":              []int{},
		"a text":                "item",
		"a number":              json.RawMessage("-1e999"),
		"id null":               with("id", nil),
		"id empty":              with("id", ""),
		"id an object":          with("id", map[string]any{"id": 1}),
		"id a fraction":         with("id", 1.5),
		"id seen":               twice{},
		"id seen, else empty":   twice{idOnly: true},
		"text of 300 KB":        with(f.text, strings.Repeat("x", 300<<10)),
		"text of 300 KB in ids": with("id", strings.Repeat("x", 300<<10)),
		"text a number":         with(f.text, 1),
		"text a list":           with(f.text, []string{"a"}),
		"number too large":      with(f.number, json.RawMessage("1e999")),
		"number too small":      with(f.number, json.RawMessage("-1e999")),
		"number in words":       with(f.number, "12.50"),
		"number of 10,000 digits": with(f.number,
			json.RawMessage(strings.Repeat("9", 10_000))),
		"count negative":   with(f.count, -1),
		"count true":       with(f.count, true),
		"year 0001":        with(f.date, "0001-01-01T00:00:00Z"),
		"year 0001 alone":  with(f.date, "0001-01-01"),
		"no time":          with(f.date, "soon"),
		"time empty":       with(f.date, ""),
		"time a number":    with(f.date, 1767225600),
		"object a list":    with(f.object, []int{1}),
		"object 5000 deep": with(f.object, deep),
	}
	for name, item := range all {
		if item == nil {
			delete(all, name) // the resource has no such field
		}
	}
	return all
}

// twice stands for the first good item once more, or for its id alone.
type twice struct{ idOnly bool }

// TestBadItems puts single bad items among good ones, which must stay as they are.
func TestBadItems(t *testing.T) {
	for _, victim := range Resources() {
		f, isList := itemFields()[victim.Name]
		if !isList {
			continue
		}
		fresh := func() map[string]any { return map[string]any{"id": "not-seen-before"} }
		if victim.Name == "transactions" {
			fresh = func() map[string]any {
				return map[string]any{"id": 999_999_999, "type": "topup", "amount": map[string]any{"usd": 1}}
			}
		}
		all := badItems(f, fresh)
		for i, name := range slices.Sorted(maps.Keys(all)) {
			if racing && i%3 != len(victim.Name)%3 {
				continue // the others are for the other resources
			}
			bad := all[name]
			t.Run(victim.Name+"/"+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, r *rig) { leftOut(t, r, victim, bad) })
			})
		}
	}
}

// leftOut has a list hold a bad item and wants the list shown as if it were not there.
func leftOut(t *testing.T, r *rig, victim Resource, bad any) {
	c := every(time.Minute, 10*time.Minute)
	want := r.once(c)
	r.fresh()
	recover := r.provider.answer(victim.Endpoint, func(w http.ResponseWriter, _ *http.Request) {
		body := decoded(t, r.good(victim.Endpoint+limit(victim)))
		items := body["data"].([]any)
		item := bad
		switch again, is := bad.(twice); {
		case is && again.idOnly:
			item = map[string]any{"id": items[0].(map[string]any)["id"]}
		case is:
			item = items[0]
		}
		body["data"] = append([]any{items[0], item}, items[1:]...)
		_, _ = w.Write(encoded(t, body))
	})
	r.run(c)
	time.Sleep(150 * time.Second)
	r.settle()
	same(t, "data", r.data(), want)
	same(t, "collector_success", r.samples(collectorSuccess.Name), successes())
	same(t, "invalid_items", r.samples(collectorInvalid.Name), invalids(victim.Name, 1))
	same(t, "api_errors_total", r.faults(), map[string]int{})
	lines := r.log.take(t)
	sameLog(t, lines, logLine{"level=warn", named(victim), `msg="items left out" items=1 first=`})
	for _, l := range lines {
		if len(l) > 1000 {
			t.Errorf("log line of %d bytes: %.200s", len(l), l)
		}
	}

	recover()
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	same(t, "data after recovery", r.data(), want)
	same(t, "invalid_items after recovery", r.samples(collectorInvalid.Name), invalids("", 0))
	sameLog(t, r.log.take(t), logLine{"level=info", named(victim), `msg="all items understood again"`})
}

func limit(r Resource) string {
	if r.Name == "topups" || r.Name == "transactions" {
		return "?limit=100"
	}
	return ""
}
