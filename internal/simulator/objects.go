package simulator

import (
	"math"
	"slices"
	"time"
)

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

// Put sets the value at a path. It does nothing if the parent does not exist.
func Put(o Object, value any, path ...string) {
	last := len(path) - 1
	if parent, ok := At(o, path[:last]...).(Object); ok && parent != nil {
		parent[path[last]] = value
	}
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

func find(list []Object, id string) (Object, bool) {
	i := slices.IndexFunc(list, func(o Object) bool { return Text(o, "id") == id })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

func filter(list []Object, matches func(Object) bool) []Object {
	var found []Object
	for _, o := range list {
		if matches(o) {
			found = append(found, o)
		}
	}
	return found
}

func count(list []Object, matches func(Object) bool) int { return len(filter(list, matches)) }

func inStock(plan Object) bool {
	b, _ := At(plan, "availability", "in_stock").(bool)
	return b
}

func offeredAt(plan Object, location string) bool {
	ids, _ := At(plan, "availability", "locations").([]any)
	return slices.Contains(ids, any(location))
}
