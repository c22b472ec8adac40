package simulator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Run simulates activity until ctx ends: plans sell out and return, prices
// change slightly, balances are spent and topped up, servers renew, components
// degrade and recover. Events follow each other within seconds to minutes, in
// the same order in every run.
func (s *Simulator) Run(ctx context.Context) {
	c := newCatalog()
	a := &activity{rand: rand.New(rand.NewPCG(11, 15)), catalog: c.Plans, saved: c.Configurations[0]}
	events := []struct {
		every int // mean interval in ticks
		apply func(w *World, now time.Time)
	}{{10, a.stock}, {12, a.place}, {24, a.price}, {24, a.charge}, {3, a.topups}, {12, a.incident}}
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, e := range events {
			if a.rand.IntN(e.every) > 0 {
				continue
			}
			s.Change(func(w *World) {
				e.apply(w, time.Now())
				recompute(w)
			})
		}
	}
}

// activity generates random events. Its seed is fixed.
type activity struct {
	rand    *rand.Rand
	catalog []Object // plans with their first prices
	saved   Object   // the first saved configuration
}

// chance returns true with a probability in percent.
func (a *activity) chance(percent int) bool { return a.rand.IntN(100) < percent }

func (a *activity) pick(list []Object) Object { return list[a.rand.IntN(len(list))] }

// stock sells out a plan or restocks one: two to six plans are sold out.
func (a *activity) stock(w *World, _ time.Time) {
	soldOut := filter(w.Plans, func(p Object) bool { return !inStock(p) })
	if len(soldOut) >= 6 || len(soldOut) >= 2 && !a.chance(50) {
		Put(a.pick(soldOut), true, "availability", "in_stock")
	} else if others := filter(w.Plans, inStock); len(others) > 0 { // plans can be taken off the list
		Put(a.pick(others), false, "availability", "in_stock")
	}
}

// place lets the first plan that is saved as a configuration sell out in its location, or
// return.
func (a *activity) place(w *World, _ time.Time) {
	plan, location := Text(a.saved, "plan"), Text(a.saved, "location")
	if p := find(w.Plans, hasID(plan)); p != nil {
		w.SetStock(plan, location, !w.inStockAt(p, location))
	}
}

// price changes the price of one plan within five percent of its first price.
func (a *activity) price(w *World, _ time.Time) {
	first := a.pick(a.catalog)
	p := find(w.Plans, hasID(Text(first, "id")))
	percent := 95 + a.rand.IntN(11)
	if p == nil {
		return
	}
	for _, currency := range []string{"usd", "eur"} {
		Put(p, money(cents(first, "price", "monthly", currency)*percent/100), "price", "monthly", currency)
	}
}

// charge spends a part of each balance. The amount is a proportion, so that the
// balance stays within limits over weeks.
func (a *activity) charge(w *World, now time.Time) {
	for _, account := range w.accounts() {
		if amount := account.balance() * (5 + a.rand.IntN(15)) / 1000; amount > 0 {
			account.addTransaction("usage", -amount, "Traffic and backups", nil, now)
		}
		account.renew(now)
	}
}

// topups advances every top-up that is not closed, and orders one for an account that has
// no pending one.
func (a *activity) topups(w *World, now time.Time) {
	for _, account := range w.accounts() {
		pending := false
		for _, t := range account.Topups {
			switch Text(t, "status") {
			case "pending":
				pending = true
				if locked := parse(Text(t, "payment", "rate_locked_until")); !now.Before(locked) {
					closeTopup(t, "expired")
				} else if a.chance(8) {
					confirmTopup(t, 0)
				}
			case "confirming":
				needed := int(number(t, "confirmations_needed"))
				reached := int(number(t, "confirmations")) + max(needed/4, 1)
				if confirmTopup(t, reached); reached >= needed {
					account.credit(t, now)
				}
			}
		}
		if pending || !a.chance(5) {
			continue
		}
		t := newTopup(makeID("tu", Text(account.Account, "id"), now.UnixNano()), 25_00*(1+a.rand.IntN(6)), coins()[a.rand.IntN(2)], now)
		account.Topups = slices.Insert(account.Topups, 0, t)
	}
}

// incident lets a component degrade or recover. At most three are degraded. Now and then
// it schedules or ends a maintenance.
func (a *activity) incident(w *World, now time.Time) {
	all := components(w.Status)
	degraded := slices.DeleteFunc(slices.Clone(all), func(c component) bool { return c.states[c.name] == "operational" })
	switch {
	case len(degraded) > 0 && a.chance(50):
		c := degraded[a.rand.IntN(len(degraded))]
		c.states[c.name] = "operational"
	case len(degraded) < 3 && a.chance(20):
		c := all[a.rand.IntN(len(all))]
		c.states[c.name] = []string{"degraded", "degraded", "outage"}[a.rand.IntN(3)]
	}
	if a.chance(10) {
		Put(w.Status, a.rand.IntN(2), "scheduled")
	}
	summarize(w.Status, now)
}

// component is one component of a location in the status.
type component struct {
	states Object // states of all components of the location, by name
	name   string
}

func components(status Object) []component {
	var list []component
	places, _ := status["locations"].(Object)
	for _, id := range slices.Sorted(maps.Keys(places)) {
		states, _ := At(places, id, "components").(Object)
		for _, name := range slices.Sorted(maps.Keys(states)) {
			list = append(list, component{states, name})
		}
	}
	return list
}

// summarize recomputes the totals of the status: one incident for each component
// that is neither operational nor in maintenance, and the worst state as the overall
// one.
func summarize(status Object, now time.Time) {
	order := []string{"operational", "maintenance", "degraded", "outage"}
	worst, ongoing := 0, 0
	for _, c := range components(status) {
		state := slices.Index(order, fmt.Sprint(c.states[c.name]))
		if state > 1 {
			ongoing++
		}
		worst = max(worst, state)
	}
	Put(status, ongoing, "ongoing")
	if overall := order[worst]; Text(status, "overall") != overall {
		Put(status, overall, "overall")
		Put(status, date(now), "since")
	}
}
