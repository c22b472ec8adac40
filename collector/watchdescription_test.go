package collector

import (
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

func TestWatchDescription(t *testing.T) {
	w := Watch{
		Plans: []string{"epyc-7443p", "7"}, Families: []string{"performance"},
		Locations: []string{"fra", "ams"}, Regions: []string{"Europe", "North America"}, Countries: []string{"DE", "no"},
		GPU: ptr(true), MinCores: ptr(0.5), MinMemoryGiB: ptr(1e6), MaxUSDPerMonth: ptr(99.9), MaxEURPerMonth: ptr(0.0),
	}
	simtest.AssertEqual(t, "all criteria", w.Description(), "plan epyc-7443p or 7 of family performance offered in fra or ams and in Europe or North America and in DE or no, "+
		"with a GPU, 0.5 cores or more, 1000000 GiB or more, up to 99.90 USD a month, up to 0.00 EUR a month")
	simtest.AssertEqual(t, "one", Watch{GPU: ptr(false)}.Description(), "any plan, without a GPU")
}
