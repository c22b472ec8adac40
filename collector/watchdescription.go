package collector

import (
	"strconv"
	"strings"
)

// Description says in words which plans match, such as "any plan offered in
// Europe, 64 GiB or more, up to 100.00 USD a month".
func (w Watch) Description() string {
	subject := "any plan"
	if len(w.Plans) > 0 {
		subject = "plan " + joinOr(w.Plans)
	}
	if len(w.Families) > 0 {
		subject += " of family " + joinOr(w.Families)
	}
	var places []string
	for _, alternatives := range [][]string{w.Locations, w.Regions, w.Countries} {
		if len(alternatives) > 0 {
			places = append(places, "in "+joinOr(alternatives))
		}
	}
	if len(places) > 0 {
		subject += " offered " + strings.Join(places, " and ")
	}
	return strings.Join(append([]string{subject}, w.hardwareAndPrice()...), ", ")
}

// joinOr returns "a, b or c".
func joinOr(values []string) string {
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

func (w Watch) hardwareAndPrice() []string {
	var parts []string
	if w.GPU != nil {
		parts = append(parts, map[bool]string{true: "with a GPU", false: "without a GPU"}[*w.GPU])
	}
	add := func(value *float64, format func(float64) string) {
		if value != nil {
			parts = append(parts, format(*value))
		}
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	price := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	add(w.MinCores, func(v float64) string { return number(v) + " cores or more" })
	add(w.MinMemoryGiB, func(v float64) string { return number(v) + " GiB or more" })
	add(w.MaxUSDPerMonth, func(v float64) string { return "up to " + price(v) + " USD a month" })
	add(w.MaxEURPerMonth, func(v float64) string { return "up to " + price(v) + " EUR a month" })
	return parts
}
