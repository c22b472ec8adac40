package collector

import (
	"fmt"
	"strings"
)

// Description says in words which plans match, such as "any plan offered in
// Europe, 64 GiB or more, up to 100.00 USD a month".
func (w Watch) Description() string {
	words, in := "any plan", " offered in "
	if len(w.Plans) > 0 {
		words = "plan " + strings.Join(w.Plans, " or ")
	}
	if len(w.Families) > 0 {
		words += " of family " + strings.Join(w.Families, " or ")
	}
	for _, alternatives := range [][]string{w.Locations, w.Regions, w.Countries} {
		if len(alternatives) > 0 {
			words += in + strings.Join(alternatives, " or ")
			in = " and in "
		}
	}
	if w.GPU != nil {
		words += map[bool]string{true: ", with a GPU", false: ", without a GPU"}[*w.GPU]
	}
	add := func(format string, bound *float64) {
		if bound != nil {
			words += fmt.Sprintf(format, *bound)
		}
	}
	add(", %.15g cores or more", w.MinCores)
	add(", %.15g GiB or more", w.MinMemoryGiB)
	add(", up to %.2f USD a month", w.MaxUSDPerMonth)
	add(", up to %.2f EUR a month", w.MaxEURPerMonth)
	return words
}
