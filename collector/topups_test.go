package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
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
// list, apart from top-ups of a state that is not counted, and from open ones beyond the newest page.
func topupSeries(list []simulator.Object, uncounted string) map[string]float64 {
	series := map[string]float64{}
	for _, state := range topupStates {
		series[simtest.Series("server_rental_topups", "account", "main", "status", string(state))] = 0
	}
	for i, t := range list {
		id, status := t["id"].(string), strings.ToLower(t["status"].(string))
		if status != uncounted {
			series[simtest.Series("server_rental_topups", "account", "main", "status", status)]++
		}
		if i < rentalapi.MaxPageItems && (status == "pending" || status == "confirming") {
			series[simtest.Series("server_rental_topup_info", "account", "main", "coin", t["coin"].(string), "network", t["network"].(string), "status", status, "topup", id)] = 1
		}
	}
	return series
}

// byState returns the requests of a fetch that counts each state.
func byState() string {
	requests := pages(1)
	for _, state := range topupStates {
		requests += ", limit=1&page=1&status=" + string(state)
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
		{name: "a full page", list: manyTopups(2, 98), requests: pages(1)},
		{name: "a page and one", list: manyTopups(2, 99), requests: byState()},
		{name: "open ones on several pages", list: manyTopups(350, 300), requests: byState()},
		{name: "in capital letters", list: []simulator.Object{oneTopup("a", "Pending"), oneTopup("b", "CONFIRMING")}, requests: pages(1)},
		{name: "not documented, a full page", list: refunded(99, 0), requests: pages(1), uncounted: "refunded", invalid: 1},
		{name: "not documented, a page and one", list: refunded(100, 0), requests: byState(), uncounted: "refunded", invalid: 1},
		{name: "not documented, old page", list: refunded(200, 150), requests: byState(), uncounted: "refunded"},
	} {
		newFetchTest(t, topups, simulator.Account{Topups: c.list}).assertFetch(c.name, c.requests, topupSeries(c.list, c.uncounted), c.invalid)
	}
}

// TestSettlement has payments that took the longer the older they are: the last 20 count. One that
// failed later was paid, too.
func TestSettlement(t *testing.T) {
	h := newFetchTest(t, topups, simulator.Account{})
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
	h.assertFetch("fetch", pages(1), map[string]float64{
		`server_rental_topup_settlement_seconds{account="main",coin="btc"}`: 19 * 60,
		`server_rental_topup_last_paid_timestamp_seconds{account="main"}`:   float64(today.Add(time.Hour).Unix()),
	}, 0)
}
