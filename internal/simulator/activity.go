package simulator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// The longest histories that Live keeps, weeks of it. Older entries are
// dropped, which a real ledger never does.
const (
	mostTransactions = 10_000
	mostTopups       = 2_000
)

// Live makes the world move until ctx ends: plans sell out and return, prices
// move a little, balances fall and are topped up, servers renew, components
// degrade and recover. Events are some tens of seconds to a few minutes apart
// and the same in every run. Lists stay bounded however long it runs.
func (s *Simulator) Live(ctx context.Context) {
	l := newLife(time.Now())
	for {
		next := l.next()
		timer := time.NewTimer(time.Until(next.due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		s.Change(func(w *World) {
			next.happen(w, time.Now())
			settle(w)
		})
		next.due = time.Now().Add(l.about(next.every))
	}
}

// life is the chance in a moving world.
type life struct {
	rand   *rand.Rand
	events []*event
	prices map[string][2]int // cents a plan cost at first, in USD and EUR: prices stay near
}

type event struct {
	every  time.Duration // on average
	happen func(w *World, now time.Time)
	due    time.Time
}

func newLife(now time.Time) *life {
	l := &life{rand: rand.New(rand.NewPCG(11, 15)), prices: map[string][2]int{}}
	l.events = []*event{
		{every: 100 * time.Second, happen: l.stock},
		{every: 4 * time.Minute, happen: l.price},
		{every: 4 * time.Minute, happen: l.charge},
		{every: 30 * time.Second, happen: l.topups},
		{every: 12 * time.Minute, happen: l.order},
		{every: 2 * time.Minute, happen: l.incident},
		{every: 11 * time.Minute, happen: l.maintenance},
	}
	for _, e := range l.events {
		e.due = now.Add(l.about(e.every) / 2)
	}
	return l
}

func (l *life) next() *event {
	return slices.MinFunc(l.events, func(a, b *event) int { return a.due.Compare(b.due) })
}

// about is a time from half of d to one and a half of it.
func (l *life) about(d time.Duration) time.Duration {
	return d/2 + time.Duration(l.rand.Int64N(int64(d)))
}

// chance is true in so many of a hundred cases.
func (l *life) chance(percent int) bool { return l.rand.IntN(100) < percent }

func (l *life) pick(list []Object) (Object, bool) {
	if len(list) == 0 {
		return nil, false
	}
	return list[l.rand.IntN(len(list))], true
}

// stock keeps two to six plans sold out.
func (l *life) stock(w *World, _ time.Time) {
	gone := keep(w.Plans, func(p Object) bool { return !inStock(p) })
	sells := len(gone) < 2 || len(gone) < 6 && l.chance(50)
	if !sells {
		p, _ := l.pick(gone)
		put(p, true, "availability", "in_stock")
		return
	}
	if p, found := l.pick(keep(w.Plans, inStock)); found {
		put(p, false, "availability", "in_stock")
	}
}

// price moves one plan within five percent of what it cost at first.
func (l *life) price(w *World, _ time.Time) {
	p, found := l.pick(w.Plans)
	if !found {
		return
	}
	first, known := l.prices[text(p, "id")]
	if !known {
		first = [2]int{cents(p, "price", "monthly", "usd"), cents(p, "price", "monthly", "eur")}
		l.prices[text(p, "id")] = first
	}
	percent := 95 + l.rand.IntN(11)
	put(p, money(first[0]*percent/100), "price", "monthly", "usd")
	put(p, money(first[1]*percent/100), "price", "monthly", "eur")
}

// eachAccount calls f for every account, always in the same order: the course of
// events must not hang on the order of a map.
func eachAccount(w *World, f func(a *Account)) {
	for _, token := range slices.Sorted(maps.Keys(w.Accounts)) {
		if a := w.Accounts[token]; a != nil {
			f(a)
		}
	}
}

// charge takes a small part of the balance, so that a balance that is topped
// up for weeks neither grows nor falls without end.
func (l *life) charge(w *World, now time.Time) {
	eachAccount(w, func(a *Account) {
		if amount := a.balance() * (5 + l.rand.IntN(15)) / 1000; amount > 0 {
			a.book("usage", -amount, "Traffic and backups", nil, now)
		}
		a.renew(now)
		a.Transactions = a.Transactions[:min(len(a.Transactions), mostTransactions)]
	})
}

// topups moves every open top-up on.
func (l *life) topups(w *World, now time.Time) {
	eachAccount(w, func(a *Account) {
		for _, t := range a.Topups {
			switch text(t, "status") {
			case "pending":
				l.await(t, now)
			case "confirming":
				l.confirm(a, t, now)
			}
		}
	})
}

// await lets a payment come in, unless it is too late for it.
func (l *life) await(t Object, now time.Time) {
	locked, err := time.Parse(time.RFC3339, text(t, "payment", "rate_locked_until"))
	switch {
	case err == nil && !now.Before(locked):
		closeTopup(t, "expired")
	case l.chance(8):
		confirmTopup(t, 0)
	case l.chance(1):
		closeTopup(t, "canceled")
	}
}

func (l *life) confirm(a *Account, t Object, now time.Time) {
	needed := int(number(t, "confirmations_needed"))
	reached := int(number(t, "confirmations")) + max(needed/4, 1)
	switch {
	case reached >= needed:
		a.credit(t, now)
	case l.chance(1):
		closeTopup(t, "failed")
	default:
		confirmTopup(t, reached)
	}
}

// order asks for a new top-up where none awaits its payment.
func (l *life) order(w *World, now time.Time) {
	eachAccount(w, func(a *Account) {
		if count(a.Topups, func(t Object) bool { return text(t, "status") == "pending" }) > 0 {
			return
		}
		amount := 25_00 * (1 + l.rand.IntN(6))
		c := coins()[l.rand.IntN(2)]
		t := newTopup(ident("tu", text(a.Account, "id"), now.UnixNano()), amount, c, now)
		a.Topups = slices.Insert(a.Topups, 0, t)
		a.Topups = a.Topups[:min(len(a.Topups), mostTopups)]
	})
}

// incident has a component degrade now and then, and recover soon.
func (l *life) incident(w *World, now time.Time) {
	var well, ill []component
	for _, c := range components(w.Status) {
		if c.states[c.name] == "operational" {
			well = append(well, c)
			continue
		}
		ill = append(ill, c)
	}
	switch {
	case len(ill) > 0 && l.chance(50):
		c := ill[l.rand.IntN(len(ill))]
		c.states[c.name] = "operational"
	case len(ill) < 3 && len(well) > 0 && l.chance(20):
		c := well[l.rand.IntN(len(well))]
		c.states[c.name] = []string{"degraded", "degraded", "outage"}[l.rand.IntN(3)]
	}
	summarize(w.Status, now)
}

func (l *life) maintenance(w *World, _ time.Time) {
	scheduled := int(number(w.Status, "scheduled"))
	switch {
	case scheduled > 0 && l.chance(50):
		put(w.Status, scheduled-1, "scheduled")
	case scheduled < 2 && l.chance(40):
		put(w.Status, scheduled+1, "scheduled")
	}
}

// component is one state in the status, with the object that holds it.
type component struct {
	states Object
	name   string
}

func components(status Object) []component {
	var list []component
	places, _ := status["locations"].(Object)
	for _, id := range slices.Sorted(maps.Keys(places)) {
		states, _ := at(places, id, "components").(Object)
		for _, name := range slices.Sorted(maps.Keys(states)) {
			list = append(list, component{states, name})
		}
	}
	return list
}

// summarize has the totals follow the components: an incident for each that
// does not operate, and the worst state as the overall one.
func summarize(status Object, now time.Time) {
	overall, ongoing := "operational", 0
	for _, c := range components(status) {
		state := fmt.Sprint(c.states[c.name])
		if state == "operational" {
			continue
		}
		ongoing++
		if overall != "outage" {
			overall = state
		}
	}
	put(status, ongoing, "ongoing")
	if text(status, "overall") != overall {
		put(status, overall, "overall")
		put(status, date(now), "since")
	}
}
