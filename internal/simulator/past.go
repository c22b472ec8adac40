package simulator

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// MaxPast is the longest past that [NewPast] knows: the history of [ExampleAccount].
const MaxPast = 90 * 24 * time.Hour

// Past is a simulated past at the pace of a real provider. It ends in the data that
// [New] and [ExampleAccount] begin with, so that a simulation that is started then
// continues it.
type Past struct {
	start, end time.Time
	rand       *rand.Rand
	changes    []change            // by time, without those that were applied
	accounts   map[string]*Account // at the end, by token
}

// change is one event of the past.
type change struct {
	at    time.Time
	apply func(w *World)
}

// NewPast returns the past from start, at most [MaxPast] before end, to end. It depends
// on its arguments only. Accounts are names by token.
func NewPast(start, end time.Time, accounts map[string]string) *Past {
	p := &Past{start: start, end: end, rand: rand.New(rand.NewPCG(1, 1)), accounts: map[string]*Account{}}
	c := newCatalog()
	for i, plan := range c.Plans {
		p.addStays(inStock(plan), inStock(plan), func(w *World, stock bool) { Put(w.Plans[i], stock, "availability", "in_stock") })
	}
	for i, saved := range c.Configurations { // the first one comes for minutes, the others are rarely sold out
		place := Place(Text(saved, "plan"), Text(saved, "location"))
		p.addStays(i > 0, true, func(w *World, stock bool) { w.SoldOutAt[place] = !stock })
	}
	p.addPrices(c.Plans)
	p.addIncidents(len(components(operationalStatus(c.Locations, end))))
	for token, name := range accounts {
		p.accounts[token] = ExampleAccount(name, end)
	}
	slices.SortStableFunc(p.changes, func(x, y change) int { return x.at.Compare(y.at) })
	return p
}

// Apply changes the world to that of a time, which is not before that of the last call.
func (p *Past) Apply(w *World, now time.Time) {
	for ; len(p.changes) > 0 && !p.changes[0].at.After(now); p.changes = p.changes[1:] {
		p.changes[0].apply(w)
	}
	for token, last := range p.accounts {
		w.Accounts[token] = last.at(now, p.end)
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

// stays has the least and the mean time that a plan stays in stock or sold out, by whether
// the catalog has it in stock and then by whether it is now.
var stays = map[bool]map[bool][2]time.Duration{
	true:  {true: {day, 5 * day}, false: {30 * time.Minute, 4 * time.Hour}},
	false: {true: {6 * time.Minute, 20 * time.Minute}, false: {time.Hour, 10 * time.Hour}},
}

// addStays lets something sell out and return. It goes backward from its stock at the end.
func (p *Past) addStays(usual, stock bool, set func(w *World, stock bool)) {
	for at, stock := p.end, stock; at.After(p.start); stock = !stock {
		least, mean := stays[usual][stock][0], stays[usual][stock][1]
		at = at.Add(-least - time.Duration(p.rand.ExpFloat64()*float64(mean-least)))
		p.add(at, func(w *World) { set(w, stock) })
	}
}

// addPrices gives a third of the plans other prices at first, and twice new ones. The last
// are those of the catalog.
func (p *Past) addPrices(plans []Object) {
	for _, i := range p.rand.Perm(len(plans))[:len(plans)/3] {
		set := func(at time.Time, percent int) {
			for _, currency := range []string{"usd", "eur"} {
				price := number(plans[i], "price", "monthly", currency)
				if percent != 100 { // prices end in .90
					price = math.Round(price*float64(percent)/100) - 0.1
				}
				p.add(at, func(w *World) { Put(w.Plans[i], price, "price", "monthly", currency) })
			}
		}
		last := p.end.Add(-p.between(day/3, 10*day))
		set(time.Time{}, 102+p.rand.IntN(4))
		set(last.Add(-p.between(4*day, 14*day)), 95+p.rand.IntN(4))
		set(last, 100)
	}
}

// addIncidents lets one of some components fail every few days, the last time three hours
// before the end. There is one maintenance, which is announced two days before.
func (p *Past) addIncidents(components int) {
	p.add(time.Time{}, func(w *World) { Put(w.Status, date(p.start.Add(-30*day)), "since") })
	for at := p.end.Add(-3 * time.Hour); at.After(p.start); at = at.Add(-p.between(day, 7*day)) {
		state := []string{"degraded", "degraded", "outage"}[p.rand.IntN(3)]
		p.addIncident(at, p.between(25*time.Minute, time.Hour), p.rand.IntN(components), state)
	}
	begin := p.end.Add(-8 * day).Truncate(day).Add(2 * time.Hour)
	p.addIncident(begin, 2*time.Hour, 2, "maintenance")
	p.add(begin.Add(-2*day), func(w *World) { Put(w.Status, 1, "scheduled") })
	p.add(begin.Add(2*time.Hour), func(w *World) { Put(w.Status, 0, "scheduled") })
}

// addIncident changes the state of a component for some time.
func (p *Past) addIncident(at time.Time, length time.Duration, which int, state string) {
	for at, state := range map[time.Time]string{at: state, at.Add(length): "operational"} {
		p.add(at, func(w *World) {
			c := components(w.Status)[which]
			c.states[c.name] = state
			summarize(w.Status, at)
		})
	}
}

// suspendedBefore is when the suspended server was suspended, before the end.
const suspendedBefore = 50 * time.Hour

// at returns the account as it was at a time. That follows from the time stamps of its data
// at the end: a paid top-up appears when it is paid, all else when it is created.
func (a *Account) at(now, end time.Time) *Account {
	existing := func(list []Object) []Object {
		return filter(list, func(o Object) bool { return !parse(cmp.Or(Text(o, "paid_at"), Text(o, "created_at"))).After(now) })
	}
	past := Account{
		Account: maps.Clone(a.Account), Topups: existing(a.Topups), Transactions: existing(a.Transactions),
		Configurations: existing(a.Configurations), SSHKeys: existing(a.SSHKeys),
	}
	past.Account["balance"] = past.Transactions[0]["balance_after"]
	for _, server := range a.Servers {
		server = maps.Clone(server)
		next := parse(Text(server, "renews_at") + "T00:00:00Z")
		for months := 1; next.AddDate(0, -months, 0).After(now); months++ {
			server["renews_at"] = date(next.AddDate(0, -months, 0))
		}
		if now.Before(end.Add(-suspendedBefore)) {
			server["status"] = "active"
		}
		past.Servers = append(past.Servers, server)
	}
	return &past
}
