package simulator

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
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
	Status   Object
	Accounts map[string]*Account // accounts by API token
	// SoldOutAt tells where a plan that is in stock is sold out. A key has the ids of plan and location.
	SoldOutAt map[[2]string]bool
	// Failing has the HTTP status of endpoints that fail, by path ("/plans").
	Failing map[string]int

	CacheOffset time.Duration // time from a multiple of the cache time until public responses are made
	SendsAge    bool          // whether public responses have the header Age, and fractions of a second in time stamps
	Caches      bool          // whether public responses stay the same for the cache time, whatever changes

	changed time.Time // time of the last change
}

// Account is the provider's data of one customer.
type Account struct {
	Account              Object
	Topups, Transactions []Object // newest first

	Configurations, SSHKeys, Servers []Object
}

// site is the address of the provider's website.
const site = "https://rental.example"

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
		Put(l, len(filter(here, func(p Object) bool { return w.inStockAt(p, Text(l, "id")) })), "plans_in_stock")
	}
	for _, a := range w.accounts() {
		for _, c := range a.Configurations {
			Put(c, w.inStockAt(find(w.Plans, hasID(Text(c, "plan"))), Text(c, "location")), "in_stock")
		}
	}
}

// accounts returns the accounts in order of their tokens, so that events are the same in
// every run.
func (w *World) accounts() (list []*Account) {
	for _, token := range slices.Sorted(maps.Keys(w.Accounts)) {
		list = append(list, w.Accounts[token])
	}
	return list
}

// inStockAt returns whether a plan can be ordered in a location. The catalog has a plan in
// stock if it is in stock anywhere.
func (w *World) inStockAt(plan Object, location string) bool {
	return inStock(plan) && !w.SoldOutAt[[2]string{Text(plan, "id"), location}]
}

// SetStock lets a plan come in stock or sell out in a location, or in all if that is empty, and
// sets what follows. Only a plan that is sold out in all locations is sold out in the catalog.
func (w *World) SetStock(plan, location string, stock bool) {
	p, anywhere := find(w.Plans, hasID(plan)), false
	for _, l := range w.Locations {
		id := Text(l, "id")
		here := w.inStockAt(p, id)
		if location == "" || location == id {
			here = stock
		}
		w.SoldOutAt[[2]string{plan, id}] = !here
		anywhere = anywhere || here && offeredAt(p, id)
	}
	Put(p, anywhere, "availability", "in_stock")
	recompute(w)
}

// alternative returns the id of the plan in stock that is closest in price to a
// plan that is sold out, preferably of the same family.
func alternative(plans []Object, p Object) any {
	candidates := filter(plans, func(o Object) bool { return inStock(o) && Text(o, "family") == Text(p, "family") })
	if len(candidates) == 0 {
		candidates = filter(plans, inStock)
	}
	if inStock(p) || len(candidates) == 0 {
		return nil
	}
	gap := func(o Object) float64 {
		return math.Abs(number(o, "price", "monthly", "usd") - number(p, "price", "monthly", "usd"))
	}
	return slices.MinFunc(candidates, func(x, y Object) int { return cmp.Compare(gap(x), gap(y)) })["id"]
}

// catalogJSON is the documented catalog as the API sends it. recompute sets what follows
// from the stock: delivery, alternative, plans and plans_in_stock.
//
//go:embed catalog.json
var catalogJSON []byte

// catalog is the provider's data that all customers see, and what an example account saved.
type catalog struct {
	Plans, Locations, OS []Object
	Configurations       []Object // configurations without ids, names, times and stock
}

// newCatalog returns a catalog that the caller may change.
func newCatalog() catalog {
	var c catalog
	if err := json.Unmarshal(catalogJSON, &c); err != nil {
		panic("simulator: catalog.json: " + err.Error())
	}
	return c
}

// operationalStatus returns the status without incidents.
func operationalStatus(locations []Object, now time.Time) Object {
	states := Object{}
	for _, l := range locations {
		states[Text(l, "id")] = Object{
			"city":       Text(l, "city"),
			"components": Object{"network": "operational", "ddos": "operational", "provisioning": "operational", "ipmi": "operational"},
		}
	}
	return Object{
		"overall": "operational", "since": date(now.AddDate(0, 0, -30)),
		"locations": states, "ongoing": 0, "scheduled": 0,
	}
}

// At returns the value at a path of keys in nested objects, nil if there is none.
func At(o Object, path ...string) any {
	var v any = o
	for _, key := range path {
		inner, ok := v.(Object)
		if !ok {
			return nil
		}
		v = inner[key]
	}
	return v
}

// Put sets the value at a path; objects on the way are made.
func Put(o Object, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		inner, ok := o[key].(Object)
		if !ok {
			inner = Object{}
			o[key] = inner
		}
		o = inner
	}
	o[path[len(path)-1]] = value
}

// Text returns the string at a path of keys, "" if there is none.
func Text(o Object, path ...string) string {
	s, _ := At(o, path...).(string)
	return s
}

// number returns the value at a path as a number, 0 if it is not one.
func number(o Object, path ...string) float64 {
	switch n := At(o, path...).(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}

// cents returns an amount of money in whole cents, for exact sums.
func cents(o Object, path ...string) int {
	return int(math.Round(100 * number(o, path...)))
}

// money converts cents to an amount as sent by the API.
func money(cents int) float64 { return float64(cents) / 100 }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// parse reads a time stamp that the simulator wrote.
func parse(stamp string) time.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		panic(fmt.Sprintf("simulator: time stamp %q: %v", stamp, err))
	}
	return t
}

// find returns the first object that matches, nil if there is none.
func find(list []Object, matches func(Object) bool) Object {
	if found := filter(list, matches); len(found) > 0 {
		return found[0]
	}
	return nil
}

func filter(list []Object, matches func(Object) bool) []Object {
	return slices.DeleteFunc(slices.Clone(list), func(o Object) bool { return !matches(o) })
}

func hasID(id string) func(Object) bool { return func(o Object) bool { return Text(o, "id") == id } }

func inStock(plan Object) bool {
	b, _ := At(plan, "availability", "in_stock").(bool)
	return b
}

func offeredAt(plan Object, location string) bool {
	ids, _ := At(plan, "availability", "locations").([]any)
	return slices.Contains(ids, any(location))
}
