package simulator

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Object is a JSON object as the API sends it. It may contain any value that can
// be encoded as JSON, also values that a correct provider would not send. Nested
// objects are Objects too.
type Object = map[string]any

// World is the provider's data. It is modified only in [Simulator.Change].
type World struct {
	Plans, Locations, OS []Object
	// GeneratedAt is the generated_at of the plans. While it is nil, the current
	// time is sent, rounded down to a full minute as by a provider that caches,
	// but not older than the last change.
	GeneratedAt any
	// Status gets an updated_at in the same way, rounded to 30 seconds, unless it
	// contains one.
	Status    Object
	CustomISO bool
	Accounts  map[string]*Account // by API token
}

// Account is the provider's data of one customer.
type Account struct {
	Account              Object
	Topups, Transactions []Object // newest first

	Configurations, SSHKeys, Servers []Object
}

// site is the address of the provider's website.
const site = "https://rental.example"

func newWorld(now time.Time) *World {
	c := newCatalog()
	w := &World{Plans: c.Plans, Locations: c.Locations, OS: c.OS, CustomISO: true, Accounts: map[string]*Account{}}
	w.Status = operationalStatus(w.Locations, now)
	recompute(w)
	return w
}

// recompute updates the fields that depend on the stock of the plans: delivery,
// alternatives, the counts of the locations, and saved configurations.
func recompute(w *World) {
	delivery := map[bool]string{true: "instant", false: "sold_out"}
	for _, p := range w.Plans {
		Put(p, delivery[inStock(p)], "availability", "delivery")
		Put(p, alternative(w.Plans, p), "availability", "alternative")
	}
	for _, l := range w.Locations {
		here := filter(w.Plans, func(p Object) bool { return offeredAt(p, Text(l, "id")) })
		Put(l, len(here), "plans")
		Put(l, count(here, inStock), "plans_in_stock")
	}
	eachAccount(w, func(a *Account) {
		for _, c := range a.Configurations {
			p, known := find(w.Plans, Text(c, "plan"))
			Put(c, known && inStock(p), "in_stock")
		}
	})
}

// alternative returns the id of the plan in stock that is closest in price to a
// plan that is sold out, preferably of the same family.
func alternative(plans []Object, p Object) any {
	if inStock(p) {
		return nil
	}
	candidates := filter(plans, func(o Object) bool { return inStock(o) && Text(o, "family") == Text(p, "family") })
	if candidates == nil {
		candidates = filter(plans, inStock)
	}
	if candidates == nil {
		return nil
	}
	gap := func(o Object) float64 {
		return math.Abs(number(o, "price", "monthly", "usd") - number(p, "price", "monthly", "usd"))
	}
	return slices.MinFunc(candidates, func(x, y Object) int { return cmp.Compare(gap(x), gap(y)) })["id"]
}
