package docs_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

// questions returns the queries of docs/metrics.md by the question that they answer.
func questions(t *testing.T) map[string][]string {
	t.Helper()
	all, question, query := map[string][]string{}, "", ""
	bold := regexp.MustCompile(`^\*\*(.+)\*\*`)
	inQuery := false
	for line := range strings.Lines(repo.Read(t, "docs/metrics.md")) {
		switch m := bold.FindStringSubmatch(line); {
		case m != nil:
			question = m[1]
		case line == "```promql\n":
			inQuery, query = true, ""
		case inQuery && line == "```\n":
			inQuery = false
			all[question] = append(all[question], query)
		case inQuery:
			query += line
		}
	}
	return all
}

// TestQuestions evaluates each query of docs/metrics.md on generated data, and compares the
// result with what Go computes from the same data without PromQL.
func TestQuestions(t *testing.T) {
	tests := map[string]func(t *testing.T, r *rand.Rand, queries []string){
		"Which plans can be ordered now, the cheapest first?":                                testOrderable,
		"How long has a plan been sold out?":                                                 testSoldOut,
		"How often did it come back in 30 days, and what share of the time was it in stock?": testRestocks,
		"Which prices differ from a week ago?":                                               testPrices,
		"How many days does the balance last?":                                               testFunded,
		"What is due within seven days?":                                                     testDue,
		"What was paid in the last 30 days, and for what?":                                   testPaid,
		"Which servers are not active?":                                                      testNotActive,
		"What is not working at the provider, and where?":                                    testNotWorking,
		"How old is the data?":                                                               testAge,
	}
	documented := questions(t)
	simtest.AssertEqual(t, "tested questions", slices.Sorted(maps.Keys(tests)), slices.Sorted(maps.Keys(documented)))
	for question, test := range tests {
		t.Run(question, func(t *testing.T) {
			for seed := range uint64(4) {
				t.Logf("seed %d", seed)
				test(t, rand.New(rand.NewPCG(13, seed)), documented[question])
			}
		})
	}
}

// chance returns true once in n times.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// plan is what the provider says about a plan in each minute.
type plan struct {
	id      string
	listed  [2]int // from the first minute to before the second
	inStock []bool
	price   []float64 // NaN: not known
}

// market is a history of plans with an exporter that is restarted and a Prometheus with gaps.
type market struct {
	database
	begin          time.Time
	now            time.Time
	exporter, gaps []bool // whether the exporter runs, and Prometheus does not, in each minute
	plans          []plan
}

const day = 24 * 60 // minutes

// newMarket returns 35 days. No restart of the exporter is in a gap of Prometheus.
func newMarket(t *testing.T, r *rand.Rand) *market {
	minutes := 35*day - r.IntN(50)
	m := &market{database: database{t: t}, begin: time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), exporter: make([]bool, minutes), gaps: make([]bool, minutes)}
	m.now = m.begin.Add(time.Duration(minutes-1)*time.Minute + time.Duration(r.IntN(50))*time.Second)
	for i := range m.exporter {
		m.exporter[i] = true
	}
	for d := range 34 {
		from := d*day + 60 + r.IntN(18*60)
		switch {
		case !chance(r, 3):
		case d%2 == 0:
			copy(m.exporter[from:], make([]bool, 1+r.IntN(40)))
		default:
			for i := range 1 + r.IntN(180) {
				m.gaps[from+i] = true
			}
		}
	}
	if chance(r, 2) { // a gap a week ago
		for i := range 30 {
			m.gaps[minutes-7*day-15+i] = true
		}
	}
	for i := range 8 {
		m.plans = append(m.plans, newPlan(r, i, minutes))
	}
	m.scrape()
	return m
}

func newPlan(r *rand.Rand, i, minutes int) plan {
	p := plan{id: "epyc-9654", listed: [2]int{0, minutes}}
	if i > 0 {
		p.id = fmt.Sprintf("plan-%d", i)
	}
	switch i {
	case 1: // listed for the first time
		p.listed[0] = r.IntN(34)*day + 30
	case 2: // not listed any more
		p.listed[1] = (1+r.IntN(34))*day - 30
	}
	inStock, inStockAtLast, price := chance(r, 2), chance(r, 2), float64(1000*(i+1)+r.IntN(900))/10
	for minute := range minutes {
		if minute == minutes-10 {
			inStock = inStockAtLast
		} else if chance(r, 2*day) || chance(r, 60) && inStock && i%2 == 0 {
			inStock = !inStock
		}
		switch {
		case i == 3 || chance(r, 10*day):
			price = math.NaN()
		case chance(r, 5*day):
			price = float64(1000*(i+1)+r.IntN(900)) / 10
		}
		p.inStock, p.price = append(p.inStock, inStock), append(p.price, price)
	}
	return p
}

// seen reports whether the exporter sees a plan in a minute.
func (m *market) seen(p plan, minute int) bool {
	return minute >= p.listed[0] && minute < p.listed[1] && m.exporter[minute]
}

// scraped reports whether Prometheus has a sample of a plan in a minute.
func (m *market) scraped(p plan, minute int) bool { return m.seen(p, minute) && !m.gaps[minute] }

// restocked reports whether the exporter sees a plan come back in stock in a minute.
func (m *market) restocked(p plan, minute int) bool {
	return minute > 0 && m.seen(p, minute-1) && m.seen(p, minute) && !p.inStock[minute-1] && p.inStock[minute]
}

func (m *market) at(minute int) time.Time { return m.begin.Add(time.Duration(minute) * time.Minute) }

// scrape writes what the exporter exposes in each minute.
func (m *market) scrape() {
	for _, p := range m.plans {
		inStock, price := m.series("a", "server_rental_plan_in_stock", "plan", p.id), m.series("a", "server_rental_plan_price_usd_per_month", "plan", p.id)
		restocks, last := m.series("a", "server_rental_plan_restocks_total", "plan", p.id), m.series("a", "server_rental_plan_last_in_stock_timestamp_seconds", "plan", p.id)
		counted, lastSeen := 0.0, math.NaN()
		for minute := range m.exporter {
			if !m.exporter[minute] {
				counted, lastSeen = 0, math.NaN()
			}
			if m.restocked(p, minute) {
				counted++
			}
			value := 0.0
			if m.seen(p, minute) && p.inStock[minute] {
				value, lastSeen = 1, float64(m.at(minute).Unix())
			}
			if m.gaps[minute] {
				continue
			}
			for s, v := range map[*series]float64{inStock: value, price: p.price[minute], restocks: counted, last: lastSeen} {
				if !m.seen(p, minute) || math.IsNaN(v) {
					s.missing(m.at(minute))
					continue
				}
				s.add(m.at(minute), v)
			}
		}
	}
}

func byPlan(p plan) string { return key(labels.FromStrings("plan", p.id)) }

func testOrderable(t *testing.T, r *rand.Rand, queries []string) {
	m := newMarket(t, r)
	want, last := map[string]float64{}, len(m.exporter)-1
	for _, p := range m.plans {
		if m.seen(p, last) && p.inStock[last] {
			want[byPlan(p)] = p.price[last]
			if math.IsNaN(p.price[last]) {
				want[byPlan(p)] = math.Inf(1)
			}
		}
	}
	simtest.AssertEqual(t, "prices", m.values(queries[0], m.now), want)
	var got []float64
	for _, sample := range m.vector(queries[0], m.now) {
		got = append(got, sample.F)
	}
	simtest.AssertEqual(t, "order", got, slices.Sorted(slices.Values(got)))
}

func testSoldOut(t *testing.T, r *rand.Rand, queries []string) {
	m := newMarket(t, r)
	p, last, want := m.plans[0], len(m.exporter)-1, map[string]float64{}
	for minute := range m.exporter {
		if m.seen(p, minute) && p.inStock[minute] {
			want[byPlan(p)] = m.now.Sub(m.at(minute)).Seconds()
		}
	}
	if p.inStock[last] {
		clear(want)
	}
	simtest.AssertEqual(t, "seconds", m.values(queries[0], m.now), want)
}

func testRestocks(t *testing.T, r *rand.Rand, queries []string) {
	m := newMarket(t, r)
	restocks, share := map[string]float64{}, map[string]float64{}
	for _, p := range m.plans {
		samples, inStock, count := 0.0, 0.0, 0.0
		for minute := range m.exporter {
			if !m.at(minute).After(m.now.AddDate(0, 0, -30)) {
				continue
			}
			if samples > 0 && m.restocked(p, minute) {
				count++
			}
			if m.scraped(p, minute) {
				samples++
				if p.inStock[minute] {
					inStock++
				}
			}
		}
		if samples > 1 {
			restocks[byPlan(p)], share[byPlan(p)] = count, millionths(inStock/samples)
		}
	}
	simtest.AssertEqual(t, "restocks", m.values(queries[0], m.now), restocks)
	simtest.AssertEqual(t, "share of the time", m.values(queries[1], m.now), share)
}

func testPrices(t *testing.T, r *rand.Rand, queries []string) {
	m := newMarket(t, r)
	want, last := map[string]float64{}, len(m.exporter)-1
	week := m.now.AddDate(0, 0, -7)
	for _, p := range m.plans {
		before := math.NaN()
		for minute := range m.exporter {
			at := m.at(minute)
			if !at.After(week) && at.After(week.Add(-time.Hour)) && m.scraped(p, minute) && !math.IsNaN(p.price[minute]) {
				before = p.price[minute]
			}
		}
		if difference := p.price[last] - before; m.seen(p, last) && !math.IsNaN(difference) && difference != 0 {
			want[byPlan(p)] = millionths(difference)
		}
	}
	simtest.AssertEqual(t, "differences", m.values(queries[0], m.now), want)
}
