package collector

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// oneTopup returns a top-up as the provider sends it.
func oneTopup(id, status string) simulator.Object {
	return simulator.Object{
		"id": id, "status": status, "coin": "btc", "network": "Bitcoin", "amount": simulator.Object{"usd": 10.0},
		"bonus_percent": 0, "confirmations_needed": 3, "created_at": "2000-01-01T00:00:00Z", "links": simulator.Object{"page": "https://rental.example/topups/" + id},
	}
}

// manyTopups returns open top-ups followed by closed ones.
func manyTopups(open, closed int) []simulator.Object {
	var list []simulator.Object
	for i := range open {
		list = append(list, oneTopup(fmt.Sprintf("open-%d", i), []string{"pending", "confirming", "pending"}[i%3]))
	}
	return append(list, simulator.Topups(closed, today)...)
}

// topupSeries returns the series of server_rental_topups and server_rental_topup_info for a
// list, apart from top-ups of a state that is not counted.
func topupSeries(list []simulator.Object, uncounted string) map[string]float64 {
	series := map[string]float64{}
	for _, state := range topupStates() {
		series[simtest.Series("server_rental_topups", "account", "main", "status", string(state))] = 0
	}
	for _, t := range list {
		id, status := t["id"].(string), t["status"].(string)
		if status != uncounted {
			series[simtest.Series("server_rental_topups", "account", "main", "status", strings.ToLower(status))]++
		}
		switch strings.ToLower(status) {
		case "pending", "confirming":
			series[simtest.Series("server_rental_topup_info", "account", "main", "coin", t["coin"].(string), "network", t["network"].(string), "status", status, "topup", id)] = 1
		}
	}
	return series
}

func newTopupTest(t *testing.T, list []simulator.Object) *fetchTest {
	f := newFetchTest(t, topups())
	f.account.Topups = list
	return f
}

// byState returns the requests of a fetch that counts each state.
func byState() string {
	requests := "1"
	for _, state := range topupStates() {
		requests += fmt.Sprintf(", %s 1", state)
	}
	return requests
}

// TestTopups counts the top-ups of histories of several lengths.
func TestTopups(t *testing.T) {
	refunded := func(closed, at int) []simulator.Object {
		return slices.Insert(simulator.Topups(closed, today), at, oneTopup("odd", "refunded"))
	}
	for _, c := range []struct {
		name, requests string
		list           []simulator.Object
		uncounted      string
		invalid        int
	}{
		{name: "a full page", list: manyTopups(2, 98), requests: "1"},
		{name: "a page and one", list: manyTopups(2, 99), requests: byState()},
		{
			name: "open ones on several pages", list: manyTopups(350, 300),
			requests: strings.NewReplacer("pending 1", "pending 1, pending 2, pending 3", "confirming 1", "confirming 1, confirming 2").Replace(byState()),
		},
		{name: "in capital letters", list: []simulator.Object{oneTopup("a", "Pending"), oneTopup("b", "CONFIRMING")}, requests: "1"},
		{name: "not documented, a full page", list: refunded(99, 0), requests: "1", uncounted: "refunded", invalid: 1},
		{name: "not documented, a page and one", list: refunded(100, 0), requests: byState(), uncounted: "refunded", invalid: 1},
		{name: "not documented, newest page", list: refunded(200, 5), requests: byState(), uncounted: "refunded", invalid: 1},
		{name: "not documented, old page", list: refunded(200, 150), requests: byState(), uncounted: "refunded", invalid: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newTopupTest(t, c.list)
			f.before = func(query url.Values) error {
				limits := map[string]string{"expired": "1", "failed": "1", "canceled": "1"} // only the number of these is exported
				simtest.AssertEqual(t, "limit", query.Get("limit"), cmp.Or(limits[query.Get("status")], "100"))
				return nil
			}
			f.assertFetch("fetch", c.requests, topupSeries(c.list, c.uncounted), c.invalid)
		})
	}
}

// TestTopupsChange changes the state of a top-up between the requests of one fetch. It is in
// both states then, or in none, until the next fetch.
func TestTopupsChange(t *testing.T) {
	for _, c := range []struct {
		name        string
		before      string // the request for this state
		from, to    string
		first, info string // states in which it is counted at first; that of its other series
		invalid     int
	}{
		{"counted twice", "confirming", "pending", "confirming", "pending confirming", "confirming", 0},
		{"missed", "confirming", "confirming", "pending", "", "", 1},
		{"paid meanwhile", "paid", "confirming", "paid", "confirming paid", "confirming", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown := simulator.Topups(300, today)
			h := newTopupTest(t, append([]simulator.Object{oneTopup("a", c.from)}, shown...))
			if c.info != "" {
				shown = append(shown, oneTopup("a", c.info))
			}
			first := topupSeries(shown, c.info)
			for state := range strings.FieldsSeq(c.first) {
				first[simtest.Series("server_rental_topups", "account", "main", "status", state)]++
			}
			h.before = func(query url.Values) error {
				if query.Get("status") == c.before {
					h.account.Topups[0]["status"] = c.to
				}
				return nil
			}
			h.assertFetch("change", byState(), first, c.invalid)
			h.assertFetch("later", byState(), topupSeries(h.account.Topups, ""), 0)
		})
	}
}

// TestTopupsInvalid has top-ups that are not understood in a long history: each counts
// once, although the newest page has them too. One in the list of a state is in that state.
func TestTopupsInvalid(t *testing.T) {
	open, paid := oneTopup("open", "pending"), oneTopup("old", "paid")
	open["bonus_percent"], paid["paid_at"] = "ten", "yesterday"
	list := append([]simulator.Object{open, paid}, simulator.Topups(200, today)...)
	h := newTopupTest(t, list)
	h.assertFetch("fetch", byState(), topupSeries(list, ""), 2)

	h.body = func(query url.Values) []byte {
		return []byte(strings.Replace(h.Body("/topups?"+query.Encode(), h.token), `"status":"pending"`, `"status":null`, 1))
	}
	h.assertFetch("unknown status in the list of an open one", byState(), topupSeries(list, ""), 2)

	h.body = nil
	list[5]["status"] = nil
	invalid := h.mustFetch().Invalid
	cause := rentalapi.Cause{Item: list[5]["id"].(string), FieldError: rentalapi.FieldError{Field: "status", Problem: "null"}}
	if !slices.Contains(invalid.Causes, cause) {
		t.Errorf("got causes %v, want also %v", invalid.Causes, cause)
	}
}

// TestTopupsRefused has responses that cannot be used.
func TestTopupsRefused(t *testing.T) {
	tooMany := simulator.Topups(maxOpen+1, today)
	for _, o := range tooMany {
		o["status"] = "pending"
	}
	for want, h := range map[string]*fetchTest{
		"meta.total: more than 2000 entries: response is too large": newTopupTest(t, tooMany),
		"data: the response for status pending contains another status: response is incomplete": newBodyTest(t, topups(),
			[]byte(`{"data":[{"id":"a","status":"paid"},{"id":"b","status":"failed"}],"meta":{"total":3,"pages":2}}`)),
	} {
		_, err := h.fetch()
		simtest.AssertEqual(t, "error and requests", []string{fmt.Sprint(err), h.asked()}, []string{want, "1, pending 1"})
	}
}

// TestTopupsOfAnotherToken changes the token after some of the 7 requests of a fetch:
// top-ups of two accounts are not combined.
func TestTopupsOfAnotherToken(t *testing.T) {
	for after, want := range map[int]string{0: "<nil>", 1: ErrTokenChanged.Error(), 2: ErrTokenChanged.Error(), 6: ErrTokenChanged.Error(), 7: "<nil>"} {
		h := newTopupTest(t, manyTopups(2, 300))
		h.lab.Topups = manyTopups(1, 500)
		asked := 0
		h.before = func(url.Values) error {
			if asked++; asked > after {
				h.token = simtest.LabToken
			}
			return nil
		}
		_, err := h.fetch()
		simtest.AssertEqual(t, fmt.Sprintf("error after %d requests", after), fmt.Sprint(err), want)
	}
}

// TestSettlement has payments that took the longer the older they are: the last 20 count. One that
// failed later was paid, too.
func TestSettlement(t *testing.T) {
	h := newTopupTest(t, nil)
	for i := range 25 {
		o := oneTopup(fmt.Sprint(i), "paid")
		paid := today.AddDate(0, 0, -i)
		o["paid_at"], o["created_at"] = paid.Format(time.RFC3339), paid.Add(-time.Duration(i)*time.Minute).Format(time.RFC3339)
		h.account.Topups = append(h.account.Topups, o)
	}
	h.account.Topups[24]["coin"] = "" // an unknown coin
	failed := oneTopup("failed", "failed")
	failed["paid_at"] = today.Add(time.Hour).Format(time.RFC3339)
	h.account.Topups = append(h.account.Topups, failed)
	h.assertFetch("fetch", "1", map[string]float64{
		`server_rental_topup_settlement_seconds{account="main",coin="btc"}`: 19 * 60,
		`server_rental_topup_last_paid_timestamp_seconds{account="main"}`:   float64(today.Add(time.Hour).Unix()),
	}, 0)
}
