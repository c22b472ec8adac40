package collector

import (
	"fmt"
	"strings"
)

// Description says in words which plans match, such as "in Europe, 64 GiB or more, up to
// 100.00 USD a month".
func (w Watch) Description() string {
	var criteria []string
	add := func(name string, alternatives []string) {
		if len(alternatives) > 0 {
			criteria = append(criteria, name+" "+strings.Join(alternatives, " or "))
		}
	}
	within := func(format string, bound *float64) {
		if bound != nil {
			criteria = append(criteria, fmt.Sprintf(format, *bound))
		}
	}
	add("plan", w.Plans)
	add("family", w.Families)
	add("in", w.Locations)
	add("in", w.Regions)
	add("in", w.Countries)
	if w.GPU != nil {
		criteria = append(criteria, map[bool]string{true: "with a GPU", false: "without a GPU"}[*w.GPU])
	}
	within("%.15g cores or more", w.MinCores)
	within("%.15g GiB or more", w.MinMemoryGiB)
	within("up to %.2f USD a month", w.MaxUSDPerMonth)
	within("up to %.2f EUR a month", w.MaxEURPerMonth)
	return strings.Join(criteria, ", ")
}
