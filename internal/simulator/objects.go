package simulator

import (
	"math"
	"slices"
	"time"
)

// at follows a path of keys into nested objects. It gives nil where the path
// leads nowhere: the world may hold anything.
func at(o Object, path ...string) any {
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

// put sets the value at a path whose parent exists, and else does nothing.
func put(o Object, value any, path ...string) {
	last := len(path) - 1
	if parent, ok := at(o, path[:last]...).(Object); ok && parent != nil {
		parent[path[last]] = value
	}
}

func text(o Object, path ...string) string {
	s, _ := at(o, path...).(string)
	return s
}

// number is the value at a path as a number, 0 where it is none.
func number(o Object, path ...string) float64 {
	switch n := at(o, path...).(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}

// cents is an amount of money in whole cents, in which sums are exact.
func cents(o Object, path ...string) int {
	return int(math.Round(100 * number(o, path...)))
}

// money is an amount in cents as the API writes it.
func money(cents int) float64 { return float64(cents) / 100 }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func find(list []Object, id string) (Object, bool) {
	i := slices.IndexFunc(list, func(o Object) bool { return text(o, "id") == id })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

func keep(list []Object, wanted func(Object) bool) []Object {
	var kept []Object
	for _, o := range list {
		if wanted(o) {
			kept = append(kept, o)
		}
	}
	return kept
}

func count(list []Object, wanted func(Object) bool) int { return len(keep(list, wanted)) }

func inStock(plan Object) bool {
	is, _ := at(plan, "availability", "in_stock").(bool)
	return is
}

func offered(plan Object, location string) bool {
	switch ids := at(plan, "availability", "locations").(type) {
	case []string:
		return slices.Contains(ids, location)
	case []any:
		return slices.Contains(ids, any(location))
	}
	return false
}
