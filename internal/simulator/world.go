package simulator

import "time"

// Object is one JSON object as the API would send it. It may hold anything
// that has a JSON form, also what no sound provider would send. Nested objects
// are Objects too.
type Object = map[string]any

// World is everything the provider knows. It is changed only inside
// [Simulator.Change].
type World struct {
	Plans, Locations, OS []Object
	// GeneratedAt is the generated_at of the plans. While it is nil the time
	// of the answer is sent, to the full minute as by a provider that caches,
	// but never older than the last change.
	GeneratedAt any
	// Status gets its updated_at likewise, to the half minute, unless it
	// holds one.
	Status    Object
	CustomISO bool
	Accounts  map[string]*Account // by API token
}

// Account is what the provider knows about one customer.
type Account struct {
	Account              Object
	Topups, Transactions []Object // newest first

	Configurations, SSHKeys, Servers []Object
}

// site is where the provider's pages for people are.
const site = "https://rental.example"

func newWorld(now time.Time) *World {
	w := &World{
		Plans:     plans(),
		Locations: locations(),
		OS:        images(),
		CustomISO: true,
		Accounts:  map[string]*Account{},
	}
	w.Status = allWell(w.Locations, now)
	settle(w)
	return w
}

// settle brings all that follows from the plans' stock in line with it:
// delivery, alternatives, the locations' counts and saved configurations.
func settle(w *World) {
	for _, p := range w.Plans {
		put(p, delivery(p), "availability", "delivery")
		put(p, alternative(w.Plans, p), "availability", "alternative")
	}
	for _, l := range w.Locations {
		here := keep(w.Plans, func(p Object) bool { return offered(p, text(l, "id")) })
		put(l, len(here), "plans")
		put(l, count(here, inStock), "plans_in_stock")
	}
	for _, a := range w.Accounts {
		if a != nil {
			settleConfigurations(a.Configurations, w.Plans)
		}
	}
}

func settleConfigurations(configurations, plans []Object) {
	for _, c := range configurations {
		p, known := find(plans, text(c, "plan"))
		put(c, known && inStock(p), "in_stock")
	}
}

func delivery(p Object) string {
	if inStock(p) {
		return "instant"
	}
	return "sold_out"
}

// alternative suggests to whom a plan is sold out the plan in stock that is
// nearest in price, of the same family where there is one.
func alternative(plans []Object, p Object) any {
	if inStock(p) {
		return nil
	}
	nearest := keep(plans, func(o Object) bool { return inStock(o) && text(o, "family") == text(p, "family") })
	if nearest == nil {
		nearest = keep(plans, inStock)
	}
	var best any
	least := 0
	for _, o := range nearest {
		gap := cents(o, "price", "monthly", "usd") - cents(p, "price", "monthly", "usd")
		if gap = max(gap, -gap); best == nil || gap < least {
			best, least = at(o, "id"), gap
		}
	}
	return best
}
