package simulator

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Past is a simulated past at the pace of a real provider. It ends in the data that
// [New] and [ExampleAccount] begin with, so that a simulation that is started then
// continues it.
type Past struct {
	start, end time.Time
	rand       *rand.Rand
	changes    []change          // changes that are not applied yet, by time
	accounts   map[string]string // names by token
}

// change is one event of the past.
type change struct {
	at    time.Time
	apply func(w *World)
}

// NewPast returns the past from start, at most a year before end, to end. It depends on its
// arguments only. Accounts are names by token.
func NewPast(start, end time.Time, accounts map[string]string) *Past {
	p := &Past{start: start, end: end, rand: rand.New(rand.NewPCG(1, 1)), accounts: accounts}
	c := newCatalog()
	p.addStock(c.Plans)
	p.addPrices(c.Plans)
	p.addIncidents(len(components(operationalStatus(c.Locations, end))))
	slices.SortStableFunc(p.changes, func(x, y change) int { return x.at.Compare(y.at) })
	return p
}

// Apply changes the world to its state at a time. Times must not decrease from call to call.
func (p *Past) Apply(w *World, now time.Time) {
	for ; len(p.changes) > 0 && !p.changes[0].at.After(now); p.changes = p.changes[1:] {
		p.changes[0].apply(w)
	}
	for token, name := range p.accounts {
		w.Accounts[token] = ExampleAccount(name, p.end)
		w.Accounts[token].rewind(now, p.end)
	}
	recompute(w)
	w.GeneratedAt, w.Status["updated_at"] = stamp(now), stamp(now)
}

func (p *Past) add(at time.Time, apply func(w *World)) {
	p.changes = append(p.changes, change{at, apply})
}

// between returns a random duration.
func (p *Past) between(least, most time.Duration) time.Duration {
	return least + time.Duration(p.rand.Int64N(int64(most-least)))
}

const day = 24 * time.Hour

// addStock lets plans sell out and return. A plan stays for days in the state that it has at the end,
// and for minutes or hours in the other one.
func (p *Past) addStock(plans []Object) {
	for i, plan := range plans {
		for at, stock := p.end, inStock(plan); at.After(p.start); stock = !stock {
			stay := p.between(6*time.Minute, 3*time.Hour)
			if stock == inStock(plan) {
				stay = p.between(day/4, 4*day)
			}
			at = at.Add(-stay)
			p.add(at, func(w *World) { Put(w.Plans[i], stock, "availability", "in_stock") })
		}
	}
}

// addPrices gives a third of the plans another price at first, and later that of the catalog.
func (p *Past) addPrices(plans []Object) {
	for _, i := range p.rand.Perm(len(plans))[:len(plans)/3] {
		changed, factor := p.end.Add(-p.between(day/3, 20*day)), 0.95+0.1*p.rand.Float64()
		for _, currency := range []string{"usd", "eur"} {
			price := number(plans[i], "price", "monthly", currency)
			before := math.Round(price*factor) - 0.1 // prices end in .90
			p.add(time.Time{}, func(w *World) { Put(w.Plans[i], before, "price", "monthly", currency) })
			p.add(changed, func(w *World) { Put(w.Plans[i], price, "price", "monthly", currency) })
		}
	}
}

// addIncidents lets one of some components fail every few days, and have a maintenance once.
func (p *Past) addIncidents(number int) {
	incident := func(at time.Time, length time.Duration, which int, state string) {
		for at, state := range map[time.Time]string{at: state, at.Add(length): "operational"} {
			p.add(at, func(w *World) {
				c := components(w.Status)[which]
				c.states[c.name] = state
				summarize(w.Status, at)
			})
		}
	}
	p.add(time.Time{}, func(w *World) { Put(w.Status, date(p.start.Add(-30*day)), "since") })
	for at := p.end.Add(-3 * time.Hour); at.After(p.start); at = at.Add(-p.between(day, 7*day)) {
		incident(at, p.between(25*time.Minute, time.Hour), p.rand.IntN(number), []string{"degraded", "outage"}[p.rand.IntN(2)])
	}
	begin := p.end.Add(-8 * day).Truncate(day).Add(2 * time.Hour)
	incident(begin, 2*time.Hour, 2, "maintenance")
	p.add(begin.Add(-2*day), func(w *World) { Put(w.Status, 1, "scheduled") })
	p.add(begin.Add(2*time.Hour), func(w *World) { Put(w.Status, 0, "scheduled") })
}

// rewind sets the account to its state at a time. The time stamps of its data at the end decide: a
// paid top-up appears when it is paid, all else when it is created. One server is suspended for the
// last two days.
func (a *Account) rewind(now, end time.Time) {
	for _, list := range []*[]Object{&a.Topups, &a.Transactions, &a.Configurations, &a.SSHKeys} {
		*list = filter(*list, func(o Object) bool { return !parse(cmp.Or(Text(o, "paid_at"), Text(o, "created_at"))).After(now) })
	}
	a.Account["balance"] = a.Transactions[0]["balance_after"]
	for _, server := range a.Servers {
		renews := parse(Text(server, "renews_at") + "T00:00:00Z")
		for renews.AddDate(0, -1, 0).After(now) {
			renews = renews.AddDate(0, -1, 0)
		}
		server["renews_at"] = date(renews)
		if now.Before(end.Add(-2 * day)) {
			server["status"] = "active"
		}
	}
}
