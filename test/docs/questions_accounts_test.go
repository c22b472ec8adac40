package docs_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"server_rental_exporter/internal/simulator/simtest"
)

func byAccount(account string) string { return key(labels.FromStrings("account", account)) }

func testFunded(t *testing.T, r *rand.Rand, queries []string) {
	d, now, want := &database{t: t}, moment(r), map[string]float64{}
	for i := range 20 {
		account, days := fmt.Sprintf("a%d", i), r.IntN(4000)-300
		until := now.Truncate(24*time.Hour).AddDate(0, 0, days)
		d.series("a", "server_rental_account_funded_until_timestamp_seconds", "account", account).add(now, float64(until.Unix()))
		want[byAccount(account)] = millionths(until.Sub(now).Hours() / 24)
	}
	simtest.AssertEqual(t, "days", d.values(queries[0], now), want)
}

// moment returns a time, often near the end of a month.
func moment(r *rand.Rand) time.Time {
	date := time.Date(2023+r.IntN(4), time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	if chance(r, 2) {
		date = time.Date(date.Year(), date.Month()+1, 2-r.IntN(5), 0, 0, 0, 0, time.UTC)
	}
	return date.Add([]time.Duration{0, 24*time.Hour - time.Second, time.Duration(r.IntN(86400)) * time.Second}[r.IntN(3)])
}

// testDue generates accounts whose servers renewed in the past, renew today, at ends of
// months, are canceled, or have no known price or date; exported by one or two exporters.
func testDue(t *testing.T, r *rand.Rand, queries []string) {
	for range 6 {
		d, now, week, month := &database{t: t}, moment(r), map[string]float64{}, map[string]float64{}
		today := now.Truncate(24 * time.Hour)
		for i := range 60 {
			account := fmt.Sprintf("a%d", i)
			exporters := [][]string{{"a"}, {"b"}, {"a", "b"}}[r.IntN(3)]
			export := func(v float64, name string, pairs ...string) {
				for _, e := range exporters {
					d.series(e, "server_rental_"+name, append([]string{"account", account}, pairs...)...).add(now.Add(-time.Minute), v)
				}
			}
			billed, priced, cost, due7, due30 := 0, 0, 0.0, 0.0, 0.0
			for n := range r.IntN(6) {
				server := fmt.Sprintf("srv_%d", n)
				status := []string{"active", "active", "Active", "suspended", "pending", "canceled", "Cancelled", "DELETED", "expired", "terminated"}[r.IntN(10)]
				renews := []time.Time{today, today.AddDate(0, 0, -r.IntN(500)), today.AddDate(0, 0, r.IntN(40)), time.Date(today.Year(), time.Month(1+2*r.IntN(4)), 31, 0, 0, 0, 0, time.UTC)}[r.IntN(4)]
				price, hasPrice, hasDate := float64(r.IntN(90_000))/100, !chance(r, 8), !chance(r, 8)
				export(1, "server_info", "server", server, "plan", "p1", "location", "fra")
				export(1, "server_status", "server", server, "status", status)
				if hasPrice {
					export(price, "server_price_usd_per_month", "server", server)
				}
				if hasDate {
					export(float64(renews.Unix()), "server_renews_timestamp_seconds", "server", server)
				}
				if slices.Contains([]string{"canceled", "Cancelled", "DELETED", "expired", "terminated"}, status) {
					continue
				}
				billed++
				if !hasPrice {
					continue
				}
				priced++
				cost += price
				if hasDate {
					due7 += price * float64(renewals(renews, today, 7))
					due30 += price * float64(renewals(renews, today, 30))
				}
			}
			if billed == 0 || priced > 0 {
				export(cost, "account_cost_usd_per_month")
				week[byAccount(account)] = millionths(math.Round(due7*100) / 100)
				month[byAccount(account)] = millionths(math.Round(due30*100) / 100)
			}
		}
		d.record("billing.rules.yml", now)
		t.Log(now)
		simtest.AssertEqual(t, "due in 7 days", d.values(queries[0], now), week)
		simtest.AssertEqual(t, "due in 30 days", d.values(strings.ReplaceAll(queries[0], "sum7d", "sum30d"), now), month)
	}
}

// renewals counts the days until some days after today on which a server renews.
func renewals(first, today time.Time, days int) (count int) {
	if !first.After(today) {
		count++
	}
	for i := 1; i <= days; i++ {
		on := today.AddDate(0, 0, i)
		last := on.AddDate(0, 0, 1).Day() == 1
		if !on.Before(first) && (on.Day() == first.Day() || last && on.Day() < first.Day()) {
			count++
		}
	}
	return count
}

// payment is a transaction that the provider may remove.
type payment struct {
	minute, removed int // removed: 0 if not
	kind            string
	usd             float64
}

// testPaid generates accounts with transactions, a gap of Prometheus, many restarts, an account
// and types that appear, entries that the provider removes, and a second exporter that
// fetches a little later.
func testPaid(t *testing.T, r *rand.Rand, queries []string) {
	const minutes = 34 * day
	begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	now := begin.Add(minutes*time.Minute + time.Duration(r.IntN(300))*time.Second)
	gap := 10*day + r.IntN(day)
	d, want := &database{t: t}, map[string]float64{}
	for i := range 3 {
		account, known := fmt.Sprintf("a%d", i), 0
		if i == 2 {
			known = 15 * day
		}
		payments := newPayments(r, minutes)
		for _, p := range payments {
			if p.minute > known && p.minute > minutes-30*day {
				want[key(labels.FromStrings("account", account, "type", p.kind))] += p.usd
			}
		}
		for n, instance := range []string{"a", "b"}[:1+i%2] {
			kinds := map[string]*series{}
			for _, kind := range []string{"topup", "renewal", "addon", "voucher"} {
				kinds[kind] = d.series(instance, "server_rental_transactions_debit_usd", "account", account, "type", kind)
			}
			restart := (12+3*n)*day + r.IntN(day)
			for minute := known; minute <= minutes; minute += 2 {
				at := begin.Add(time.Duration(minute) * time.Minute)
				if minute > gap && minute < gap+5*60 {
					continue
				}
				sums := sumsAt(payments, minute-3*n)
				for kind, s := range kinds {
					sum, ok := sums[kind]
					short := minute%(5*60) >= 24 && minute%(5*60) < 40 // a restart soon after payments
					if !ok && kind == "voucher" || short || minute > restart && minute < restart+100 {
						s.missing(at)
						continue
					}
					s.add(at, sum)
				}
			}
		}
	}
	for k, usd := range want {
		want[k] = millionths(usd)
	}
	simtest.AssertEqual(t, "paid", d.values(queries[0], now), want)
}

// newPayments returns payments in the first half of hours and removals in the second, none
// of them where the last 30 days begin or end. Type addon has none, and voucher is new.
func newPayments(r *rand.Rand, minutes int) []payment {
	payments := []payment{{minute: -1, kind: "renewal", usd: 4953}, {minute: -1, kind: "topup", usd: 12}}
	for hour := 1; hour < minutes/60-1; hour++ {
		if fromBegin := hour - (minutes-30*day)/60; fromBegin >= -1 && fromBegin <= 1 || !chance(r, 12) {
			continue
		}
		p := payment{minute: 60*hour + r.IntN(25), kind: "renewal", usd: float64(r.IntN(50_000)+1) / 100}
		if hour > 20*24 && chance(r, 2) {
			p.kind = "voucher"
		}
		if later := 60*(hour+1+r.IntN(200)) + 35 + r.IntN(10); chance(r, 4) && later < minutes-60 {
			p.removed = later
		}
		payments = append(payments, p)
	}
	payments[0].removed = 25*day + 40
	return payments
}

// sumsAt returns what the provider shows of the payments in a minute, by type.
func sumsAt(payments []payment, minute int) map[string]float64 {
	sums := map[string]float64{"topup": 0, "renewal": 0, "addon": 0}
	for _, p := range payments {
		if p.minute <= minute && (p.removed == 0 || p.removed > minute) {
			sums[p.kind] += p.usd
		} else if p.minute <= minute {
			sums[p.kind] += 0
		}
	}
	return sums
}

func testNotActive(t *testing.T, r *rand.Rand, queries []string) {
	d, now, want := &database{t: t}, moment(r), map[string]float64{}
	for i := range 40 {
		server, host := fmt.Sprintf("srv_%d", i), fmt.Sprintf("node-%d", i)
		status := []string{"active", "Active", "ACTIVE", "suspended", "pending", "canceled", "inactive", ""}[r.IntN(8)]
		d.series("a", "server_rental_server_info", "account", "main", "server", server, "hostname", host).add(now, 1)
		pairs := []string{"account", "main", "server", server, "hostname", host}
		if status != "" {
			d.series("a", "server_rental_server_status", "account", "main", "server", server, "status", status).add(now, 1)
			pairs = append(pairs, "status", status)
		}
		if !slices.Contains([]string{"active", "Active", "ACTIVE"}, status) {
			want[key(labels.FromStrings(pairs...))] = 1
		}
	}
	simtest.AssertEqual(t, "servers", d.values(queries[0], now), want)
}

func testNotWorking(t *testing.T, r *rand.Rand, queries []string) {
	d, now, want := &database{t: t}, moment(r), map[string]float64{}
	for i := range 40 {
		state := []string{"operational", "Operational", "OPERATIONAL", "outage", "maintenance", "not operational"}[r.IntN(6)]
		pairs := []string{"location", []string{"fra", "FRA", "new"}[r.IntN(3)], "component", fmt.Sprint(i), "state", state}
		d.series("a", "server_rental_component_state", pairs...).add(now, 1)
		if !slices.Contains([]string{"operational", "Operational", "OPERATIONAL"}, state) {
			want[key(labels.FromStrings(pairs...))] = 1
		}
	}
	simtest.AssertEqual(t, "components", d.values(queries[0], now), want)
}

// testAge generates collectors of two exporters, of which the newer data counts.
func testAge(t *testing.T, r *rand.Rand, queries []string) {
	d, now, want := &database{t: t}, moment(r), map[string]float64{}
	for _, account := range []string{"", "main", "lab"} {
		for _, collector := range []string{"plans", "status", "servers"} {
			pairs := []string{"collector", collector, "account", account}
			youngest := math.Inf(1)
			for _, instance := range []string{"a", "b"} {
				if chance(r, 4) {
					continue // this exporter has fetched nothing yet
				}
				seconds := float64(r.IntN(100_000))
				age := seconds
				d.series(instance, "server_rental_exporter_collector_last_success_timestamp_seconds", pairs...).add(now, float64(now.Unix())-seconds)
				if !chance(r, 3) {
					response := float64(r.IntN(1000))
					d.series(instance, "server_rental_exporter_collector_answer_age_seconds", pairs...).add(now, response)
					if collector != "status" {
						age += response
					}
				}
				youngest = min(youngest, age)
			}
			if !math.IsInf(youngest, 1) {
				want[key(labels.FromStrings(pairs...))] = youngest
			}
		}
	}
	d.record("exporter.rules.yml", now)
	simtest.AssertEqual(t, "ages", d.values(queries[0], now), want)
	var ages []float64
	for _, sample := range d.vector(queries[0], now) {
		ages = append(ages, sample.F)
	}
	oldestFirst := slices.Sorted(slices.Values(ages))
	slices.Reverse(oldestFirst)
	simtest.AssertEqual(t, "order", ages, oldestFirst)
}
