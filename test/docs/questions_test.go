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
	"github.com/prometheus/prometheus/promql"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/rules"
)

// A day of the queries lasts half an hour, so that a history has more than 30 of them, with a scrape and an evaluation of
// rules each minute. Gaps, and how far Prometheus looks back, have their real lengths.
const minutes, day, month, longest = 1500, 30, 30 * 30, 9 // longest is the longest gap

// world is the truth. Slices have a value for each minute; one that is not known is NaN.
type world struct {
	*rand.Rand
	inStock, price map[string][]float64 // by plan
	memory         map[string]float64   // by plan
	operational    map[string][]float64 // of a component, by location
	servers        map[string]server
	balance, due   float64
	known          []bool // minutes with data
}

type server struct {
	plan, location, status string
	price                  float64
}

func newWorld(rng *rand.Rand) *world {
	w := &world{rng, map[string][]float64{}, map[string][]float64{}, map[string]float64{}, map[string][]float64{}, map[string]server{}, float64(rng.IntN(100)), float64(rng.IntN(100)), make([]bool, minutes)}
	for i, plan := range []string{"epyc-9654", "b", "c", "d"} {
		w.inStock[plan] = w.course(0, 1)
		w.price[plan] = w.course(10+float64(i), 20+float64(i), 30+float64(i), math.NaN())
		w.memory[plan] = float64(1<<32 + rng.IntN(1<<36))
	}
	w.operational["ams"], w.operational["fra"] = w.course(0, 1), w.course(0, 1)
	for i := range 6 {
		w.servers[fmt.Sprint("s", i)] = server{pick(w, "epyc-9654", "b", "old"), pick(w, "ams", "fra"), pick(w, "active", "suspended", "Canceled", "terminated"), pick(w, 11, 22, 50, math.NaN())}
	}
	return w
}

func pick[T any](w *world, all ...T) T { return all[w.IntN(len(all))] }

// course returns values that stay for longer than a gap, some for very long.
func (w *world) course(values ...float64) (all []float64) {
	most := pick(w, 20, 200, 2*minutes)
	for i := w.IntN(len(values)); len(all) < minutes; i += 1 + w.IntN(len(values)-1) {
		all = append(all, slices.Repeat(values[i%len(values):][:1], longest+2+w.IntN(most))...)
	}
	return all[:minutes]
}

// scrape returns what an exporter exports.
func (w *world) scrape(minute int, instance string) (all promql.Vector) {
	add := func(value float64, name string, pairs ...string) {
		if !math.IsNaN(value) {
			all = append(all, promql.Sample{F: value, Metric: labels.FromStrings(append(pairs, "__name__", "server_rental_"+name, "instance", instance, "job", "rental")...)})
		}
	}
	for plan := range w.memory {
		add(w.inStock[plan][minute], "plan_in_stock", "plan", plan)
		add(w.price[plan][minute], "plan_price_usd_per_month", "plan", plan)
		add(w.memory[plan], "plan_memory_bytes", "plan", plan)
	}
	for location, operational := range w.operational {
		add(operational[minute], "component_operational", "component", "network", "location", location)
	}
	for id, s := range w.servers {
		add(1, "server_info", "account", "main", "server", id, "plan", s.plan, "location", s.location)
		add(1, "server_status", "account", "main", "server", id, "status", s.status)
		add(s.price, "server_price_usd_per_month", "account", "main", "server", id)
	}
	add(w.balance, "account_balance_usd", "account", "main")
	add(w.due, "account_renewals_due_usd", "account", "main", "days", "30")
	return all
}

// average is that of the minutes with data within 30 days.
func (w *world) average(course []float64, now int) float64 {
	sum, n := 0.0, 0.0
	for m := max(0, now-month+1); m <= now; m++ {
		if w.known[m] {
			sum, n = sum+course[m], n+1
		}
	}
	return sum / n
}

// truth returns the results of the queries of each question, by labels. NaN is one that a gap can change, because something
// happened at the beginning of the 30 days.
func (w *world) truth(now int) map[string][]result {
	orders, since, restocks, stays, away, share := result{}, result{}, result{}, result{}, result{}, result{}
	dearer, cheapest, operational, topup, costs, differ, best := result{}, result{}, result{}, result{}, result{}, result{}, math.Inf(1)
	for plan, stock := range w.inStock {
		price, key := w.price[plan][now], of("plan", plan)
		if stock[now] == 1 {
			if orders[key] = price; math.IsNaN(price) {
				orders[key] = math.Inf(1)
			} else if each := price / (w.memory[plan] / (1 << 30)); each < best {
				best, cheapest = each, result{key: each}
			}
		}
		share[key], restocks[key] = w.average(stock, now), 0
		last, lengths := 0, map[float64][]float64{} // by whether it came in stock
		for m := 1; m <= now; m++ {
			if stock[m] == stock[m-1] {
				continue
			}
			if restocks[key] += stock[m]; m <= now-month {
				restocks[key] = 0
			} else if last > 0 && (plan != "d" || stock[m] == 1 || now >= month) {
				lengths[stock[m]] = append(lengths[stock[m]], float64(m-last)*60)
			}
			if last = m; max(m-(now-month), now-month-m) <= longest+1 {
				restocks[key], stays[key], away[key] = math.NaN(), math.NaN(), math.NaN()
			}
		}
		for change, mean := range map[float64]result{0: stays, 1: away} {
			for _, length := range lengths[change] {
				mean[key] += length / float64(len(lengths[change]))
			}
		}
		if plan == "epyc-9654" && stock[now] == 0 && last > 0 {
			since[key] = float64(now-last) * 60
		}
		for m := now - 7*day; m >= max(0, now-7*day-59); m-- { // the price that was last known within an hour
			if before := w.price[plan][m]; w.known[m] && !math.IsNaN(before) {
				dearer.add(key, price-before)
				break
			}
		}
	}
	for id, s := range w.servers {
		if s.status == "active" || s.status == "suspended" {
			costs.add(of("location", s.location), s.price)
			if price := w.price[s.plan]; price != nil && price[now] != s.price {
				differ.add(of("account", "main", "plan", s.plan, "server", id), s.price-price[now])
			}
		}
	}
	for location, course := range w.operational {
		operational[of("component", "network", "location", location)] = w.average(course, now)
	}
	if missing := w.due - w.balance; missing > 0 {
		topup[of("account", "main")] = missing
	}
	return map[string][]result{
		"Which plans can be ordered now, the cheapest first?":                                                {orders},
		"How long has a plan been sold out?":                                                                 {since},
		"How often did it come back in 30 days?":                                                             {restocks},
		"How long does it stay in stock, how long is it sold out, and what share of 30 days is it in stock?": {stays, away, share},
		"How much more does a plan cost than a week ago?":                                                    {dearer},
		"What do the servers of each location cost?":                                                         {costs},
		"How much must be topped up for the next 30 days?":                                                   {topup},
		"Which servers cost more, or less, than their plan does today?":                                      {differ},
		"Which plan in stock is the cheapest for each GiB?":                                                  {cheapest},
		"What share of 30 days was each component of each location operational?":                             {operational},
	}
}

// result has values by labels.
type result map[string]float64

func of(pairs ...string) string { return labels.FromStrings(pairs...).String() }

// add adds what is known.
func (r result) add(key string, value float64) {
	if !math.IsNaN(value) {
		r[key] += value
	}
}

// shorten makes the days of a query short, but not those in names of series.
var shorten = strings.NewReplacer("[90d", "[2700m", "[30d", "[900m", "[7d", "[210m", "offset 7d", "offset 210m")

// TestQuestions compares the results of each query of docs/metrics.md with the truth, in random histories: one exporter
// restarts now and then, a second one joins later, and scrapes are lost.
func TestQuestions(t *testing.T) {
	queries := map[string][][]string{}
	for _, section := range strings.Split(repo.Read(t, "docs/metrics.md"), "\n**")[1:] {
		question, text, _ := strings.Cut(section, "**")
		queries[question] = regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(text, -1)
	}
	groups := rules.Groups(t)[repo.Path(t, "alerts/stock.rules.yml")]
	for seed := range uint64(8) {
		w := newWorld(rand.New(rand.NewPCG(seed, 0)))
		p, second, lost, instance := promqltest.NewPrometheus(), w.IntN(2*minutes), map[string]int{}, map[string]int{}
		formerRules := labels.FromStrings("__name__", "plan:server_rental_plan_stay_seconds:last", "plan", "d") // so there is no mean for a month
		p.Store("", time.Unix(1_800_000_000, 0), promql.Vector{{F: -1_800_000_000, Metric: formerRules}})
		for minute := range minutes {
			at := time.Unix(1_800_000_000, 0).Add(time.Duration(minute) * time.Minute)
			for _, exporter := range []string{"a", "b"}[:1+min(1, minute/max(1, second))] {
				if lost[exporter]--; minute > 0 && lost[exporter] <= 0 && w.IntN(200) == 0 { // a restart
					lost[exporter], instance[exporter] = 1+w.IntN(longest), instance[exporter]+1
				} else if minute > 0 && lost[exporter] < -1 && w.IntN(20) == 0 {
					lost[exporter] = 1
				}
				var all promql.Vector
				if lost[exporter] <= 0 {
					all, w.known[minute] = w.scrape(minute, fmt.Sprint(exporter, instance[exporter])), true
				}
				p.Store(exporter, at, all)
			}
			for _, g := range groups {
				for _, r := range g.Rules {
					if r.Record != "" && time.Duration(minute)*time.Minute%time.Duration(g.Interval) == 0 {
						p.Store(r.Record, at.Add(10*time.Second), p.Query(t, shorten.Replace(r.Expr), at.Add(10*time.Second), r.Record))
					}
				}
			}
			if minute%51 != 0 || !w.known[minute] { // a multiple of the interval of averages
				continue
			}
			truth := w.truth(minute)
			if !maps.EqualFunc(queries, truth, func(q [][]string, t []result) bool { return len(q) == len(t) }) {
				t.Fatalf("docs/metrics.md has the queries %q, of which one has no truth", queries)
			}
			for question, wants := range truth {
				for i, want := range wants {
					got, tolerance := result{}, 1e-6
					for _, s := range p.Query(t, shorten.Replace(queries[question][i][1]), at.Add(20*time.Second), "") {
						got[s.Metric.String()] = s.F
					}
					if strings.HasPrefix(question, "How long") && i < 2 {
						tolerance = longest*60 + 20
					}
					maps.DeleteFunc(got, func(key string, _ float64) bool { return math.IsNaN(want[key]) })
					maps.DeleteFunc(want, func(_ string, v float64) bool { return math.IsNaN(v) })
					if !maps.EqualFunc(got, want, func(x, y float64) bool { return x == y || math.Abs(x-y) <= tolerance }) {
						t.Errorf("seed %d, minute %d: %s got %v, want %v", seed, minute, question, got, want)
					}
				}
			}
		}
	}
}
