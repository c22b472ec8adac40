package simulator

import (
	"cmp"
	"fmt"
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
	changes []change  // by time, without those that were applied
	changed time.Time // time of the last one that was
}

// change is one event of the past.
type change struct {
	at    time.Time
	apply func(w *World)
}

// NewPast returns the past from start, at most [MaxPast] before end, to end. It depends
// on its arguments only. Accounts are names by token.
func NewPast(start, end time.Time, accounts map[string]string) *Past {
	p := &Past{}
	random := func(topic uint64) *rand.Rand { return rand.New(rand.NewPCG(1, topic)) }
	p.addStock(random(1), start, end)
	p.addPlaces(random(4), start, end)
	p.addPrices(random(2), end)
	p.addIncidents(random(3), start, end)
	for token, name := range accounts {
		p.addAccount(token, ExampleAccount(name, end), start, end)
	}
	slices.SortStableFunc(p.changes, func(x, y change) int { return x.at.Compare(y.at) })
	return p
}

// Apply applies the changes until a time that were not applied before. It returns the
// time of the last one; zero if none was ever applied.
func (p *Past) Apply(w *World, until time.Time) (changed time.Time) {
	before := len(p.changes)
	for len(p.changes) > 0 && !p.changes[0].at.After(until) {
		p.changes[0].apply(w)
		p.changed, p.changes = p.changes[0].at, p.changes[1:]
	}
	if len(p.changes) < before {
		recompute(w)
	}
	return p.changed
}

func (p *Past) add(at time.Time, apply func(w *World)) {
	p.changes = append(p.changes, change{at, apply})
}

// stay is how long a plan is in stock or sold out.
type stay struct{ least, mean, most time.Duration }

func (s stay) draw(rng *rand.Rand) time.Duration {
	return min(s.least+time.Duration(rng.ExpFloat64()*float64(s.mean-s.least)), s.most)
}

// The stays of plans by whether the catalog has them in stock, and then in either state.
// Plans that the catalog does not have in stock return for minutes.
var stays = map[bool]map[bool]stay{
	true:  {true: {24 * time.Hour, 5 * 24 * time.Hour, 15 * 24 * time.Hour}, false: {30 * time.Minute, 4 * time.Hour, 12 * time.Hour}},
	false: {true: {2 * time.Minute, 15 * time.Minute, time.Hour}, false: {time.Hour, 10 * time.Hour, 30 * time.Hour}},
}

// addStays lets something sell out and return. It goes backward from its stock at the end.
func (p *Past) addStays(rng *rand.Rand, start, end time.Time, usual, stock bool, set func(w *World, stock bool)) {
	for at := end; at.After(start); stock = !stock {
		at = at.Add(-stays[usual][stock].draw(rng))
		now := stock
		p.add(at, func(w *World) { set(w, now) })
	}
}

// addStock lets plans sell out and return.
func (p *Past) addStock(rng *rand.Rand, start, end time.Time) {
	for i, plan := range newCatalog().Plans {
		p.addStays(rng, start, end, inStock(plan), inStock(plan), func(w *World, stock bool) { Put(w.Plans[i], stock, "availability", "in_stock") })
	}
}

// addPlaces lets the first plan that is saved as a configuration come for minutes in its
// location, and the others sell out there now and then.
func (p *Past) addPlaces(rng *rand.Rand, start, end time.Time) {
	for i, c := range newCatalog().Configurations {
		place := Place(Text(c, "plan"), Text(c, "location"))
		p.addStays(rng, start, end, i > 0, true, func(w *World, stock bool) { w.SoldOutAt[place] = !stock })
	}
}

// addPrices changes prices of a third of the plans twice in a month. The last change is
// within a day and leads to the catalog.
func (p *Past) addPrices(rng *rand.Rand, end time.Time) {
	plans := newCatalog().Plans
	for n, i := range rng.Perm(len(plans))[:len(plans)/3] {
		set := func(at time.Time, percent int) {
			for _, currency := range []string{"usd", "eur"} {
				price := number(plans[i], "price", "monthly", currency)
				if percent != 100 { // prices end in .90
					price = math.Round(price*float64(percent)/100) - 0.1
				}
				p.add(at, func(w *World) { Put(w.Plans[i], price, "price", "monthly", currency) })
			}
		}
		at := end.Add(-9 * time.Hour)
		if n > 0 {
			at = end.Add(-hours(rng, 2*24, 14*24))
		}
		set(at, 100)
		set(at.Add(-hours(rng, 4*24, 14*24)), 95+rng.IntN(4))
		set(end.Add(-2*MaxPast), 102+rng.IntN(4))
	}
}

// hours returns a random time of least to most hours.
func hours(rng *rand.Rand, least, most int) time.Duration {
	return time.Duration(least)*time.Hour + time.Duration(rng.Int64N(int64(most-least)*int64(time.Hour)))
}

// addIncidents lets a component fail every few days, the last time three hours before
// the end. There is one maintenance, which is announced two days before.
func (p *Past) addIncidents(rng *rand.Rand, start, end time.Time) {
	all := len(components(operationalStatus(newCatalog().Locations, end)))
	for at := end.Add(-3 * time.Hour); at.After(start); at = at.Add(-hours(rng, 24, 7*24)) {
		length := 25*time.Minute + hours(rng, 0, 1)/2
		p.addIncident(at, length, rng.IntN(all), []string{"degraded", "degraded", "outage"}[rng.IntN(3)])
	}
	begin := end.AddDate(0, 0, -8).Truncate(24 * time.Hour).Add(2 * time.Hour)
	p.addIncident(begin, 2*time.Hour, 2, "maintenance")
	p.add(begin.Add(-48*time.Hour), func(w *World) { Put(w.Status, 1, "scheduled") })
	p.add(begin.Add(2*time.Hour), func(w *World) { Put(w.Status, 0, "scheduled") })
}

// addIncident changes the state of a component for some time.
func (p *Past) addIncident(at time.Time, length time.Duration, which int, state string) {
	set := func(at time.Time, state string) {
		p.add(at, func(w *World) {
			c := components(w.Status)[which]
			c.states[c.name] = state
			summarize(w.Status, at)
		})
	}
	set(at, state)
	set(at.Add(length), "operational")
}

// addAccount lets the history of an account happen. Its data at any time follows from
// the time stamps of the data at the end.
func (p *Past) addAccount(token string, last *Account, start, end time.Time) {
	times := map[time.Time]bool{start: true, end.Add(-suspendedBefore): true}
	for _, list := range [][]Object{last.Transactions, last.Topups, last.Configurations, last.SSHKeys} {
		for _, o := range list {
			times[begin(o)] = true
		}
	}
	for at := range times {
		if !at.Before(start) && !at.After(end) {
			p.add(at, func(w *World) { w.Accounts[token] = last.at(at, end) })
		}
	}
}

// suspendedBefore is when the suspended server was suspended, before the end.
const suspendedBefore = 50 * time.Hour

// begin returns when an item appears in the past, with its last state: a top-up that is
// paid when it is paid, and all others when they are created.
func begin(o Object) time.Time { return parse(cmp.Or(Text(o, "paid_at"), Text(o, "created_at"))) }

// at returns the account as it was at a time before its present.
func (a *Account) at(t, end time.Time) *Account {
	existed := func(o Object) bool { return !begin(o).After(t) }
	past := *a
	past.Account, past.Servers = maps.Clone(a.Account), nil
	past.Transactions, past.Topups = filter(a.Transactions, existed), filter(a.Topups, existed)
	past.Configurations, past.SSHKeys = filter(a.Configurations, existed), filter(a.SSHKeys, existed)
	balance := 0.0
	if len(past.Transactions) > 0 {
		balance = number(past.Transactions[0], "balance_after", "usd")
	}
	past.Account["balance"] = Object{"usd": balance}
	for _, server := range a.Servers {
		server = maps.Clone(server)
		next := parse(Text(server, "renews_at") + "T00:00:00Z")
		for months := 1; next.AddDate(0, -months, 0).After(t); months++ {
			server["renews_at"] = date(next.AddDate(0, -months, 0))
		}
		if t.Before(end.Add(-suspendedBefore)) {
			server["status"] = "active"
		}
		past.Servers = append(past.Servers, server)
	}
	return &past
}

// parse reads a time stamp that the simulator wrote.
func parse(stamp string) time.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		panic(fmt.Sprintf("simulator: time stamp %q: %v", stamp, err))
	}
	return t
}
