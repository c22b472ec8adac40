package rentalapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestGoldenResponses has objects, lists and second pages.
func TestGoldenResponses(t *testing.T) {
	type meta struct{ Active *Count }
	get := func(t *testing.T, h *harness, kind string) (result string, err error) {
		switch kind {
		case "object":
			o, err := GetObject[testItem](t.Context(), h.main(), "/account")
			return fmt.Sprintf("%s, errors %v", simtest.Encode(t, o.Value), o.Errors), err
		case "list":
			p, err := GetList[testItem, meta](t.Context(), h.main(), "/servers", nil, 3)
			return fmt.Sprintf("%s, count %d, meta %s, invalid %v", simtest.Encode(t, p.Items), p.Count, simtest.Encode(t, p.Meta), p.Invalid), err
		default:
			p, err := GetPage[testItem](t.Context(), h.main(), "/topups", url.Values{"status": {"paid"}}, 2, MaxPageItems)
			simtest.AssertEqual(t, "query", h.Requests()[0].Query.Encode(), "limit=100&page=2&status=paid")
			return fmt.Sprintf("count %d, total %s, invalid %v", p.Count, simtest.Encode(t, p.Meta.Total), p.Invalid), err
		}
	}
	goldenCases(t, "testdata/responses.txt", func(t *testing.T, input string) (outcome string) {
		kind, body, _ := strings.Cut(input, " ")
		withHarness(t, func(t *testing.T, h *harness) {
			h.reply(200, body)
			result, err := get(t, h, kind)
			if err != nil {
				result = "error: " + err.Error()
			}
			outcome = result
		})
		return outcome
	})
}

// TestResponse asserts what is known about a response besides its body. It is received with its header.
func TestResponse(t *testing.T) {
	age := 17 * time.Second
	for _, c := range []struct {
		age, date string
		want      Response
	}{
		{" 17 ", "Sun, 01 Mar 2026 12:00:00 GMT", Response{Date: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Age: &age}},
		{"17.5", "yesterday", Response{}},
	} {
		withHarness(t, func(t *testing.T, h *harness) {
			h.Inject(simtest.Fault{Handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Age"], w.Header()["Date"] = []string{c.age}, []string{c.date}
				begin(w, `{"data":`)
				time.Sleep(time.Second)
				_, _ = io.WriteString(w, `[]}`)
			}})
			c.want.Token, c.want.Received = fingerprint(simtest.MainToken), time.Now()
			page, _ := GetList[testItem, struct{}](t.Context(), h.main(), "/servers", nil, 3)
			simtest.AssertEqual(t, "response", page.Response, c.want)
		})
	}
}

// TestTooLarge has a body of more than 16 MiB, and smaller ones that would take gigabytes. What
// is allocated to refuse them is more than what they take at any moment; with the race detector, a
// third more.
func TestTooLarge(t *testing.T) {
	type plan struct {
		ID        string
		Locations []string
	}
	item := func(id string, locations int) string {
		return fmt.Sprintf(`{"id":%q,"locations":["x"%s]}`, id, strings.Repeat(`,"fra"`, locations-1))
	}
	const tooLarge = "response is too large"
	for name, c := range map[string]struct{ body, want string }{
		"body":    {`{"data":["` + strings.Repeat("x", 16<<20), tooLarge},
		"text":    {`{"data":["` + strings.Repeat("x", 15<<20) + `"]}`, tooLarge},
		"meta":    {`{"data":[],"meta":[0` + strings.Repeat(",0", 7<<20) + "]}", tooLarge},
		"items":   {`{"data":[{}` + strings.Repeat(",{}", 5<<20) + "]}", "data: more than 10 items: " + tooLarge},
		"item":    {`{"data":[` + item("a", 500_000) + "]}", tooLarge},
		"unused":  {`{"data":[{"id":"a","locations":[],"more":[{}` + strings.Repeat(",{}", 1<<18) + `]}],"more":{}}`, ""},
		"members": {`{"data":[{"id":"a","locations":[]` + strings.Repeat(`,"":0`, 200_000) + `}]}`, ""},
		"many elements": {
			`{"data":[` + item("a", 100_000) + "," + item("b", 100_000) + "," + item("c", 100_000) + "]}",
			"data: more than 250000 elements of arrays and objects: response is too large",
		},
	} {
		client := clientOver(&url.URL{Scheme: "https", Host: "rental.example"}, roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(c.body))}, nil
		}))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := GetList[plan, struct{}](t.Context(), client, "/plans", nil, 10)
		runtime.ReadMemStats(&after)
		simtest.AssertEqual(t, name, errorText(err), c.want)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 150 {
			t.Errorf("%s: allocated %d MiB", name, allocated)
		}
	}
}
