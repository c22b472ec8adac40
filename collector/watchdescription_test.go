package collector

import "testing"

func TestWatchDescription(t *testing.T) {
	for want, w := range map[string]Watch{
		"any plan, without a GPU": {GPU: ptr(false)},
		"any plan, 1000000000000000 cores or more, up to 1000.00 USD a month":  {MinCores: ptr(1e15), MaxUSDPerMonth: ptr(1000.0)},
		"any plan offered in Europe, 64 GiB or more, up to 100.00 USD a month": {Regions: []string{"Europe"}, MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(100.0)},
		"any plan of family entry, storage or gpu, 0.5 cores or more":          {Families: []string{"entry", "storage", "gpu"}, MinCores: ptr(0.5)},
		"plan gpu-l40s":          {Plans: []string{"gpu-l40s"}},
		"any plan offered in DE": {Countries: []string{"DE"}},
		"plan epyc-7443p or 7 of family performance offered in fra or ams and in Europe or North America and in DE or no, " +
			"with a GPU, 8 cores or more, 64 GiB or more, up to 99.90 USD a month, up to 0.00 EUR a month": {
			Plans: []string{"epyc-7443p", "7"}, Families: []string{"performance"},
			Locations: []string{"fra", "ams"}, Regions: []string{"Europe", "North America"}, Countries: []string{"DE", "no"},
			GPU: ptr(true), MinCores: ptr(8.0), MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(99.9), MaxEURPerMonth: ptr(0.0),
		},
	} {
		if got := w.Description(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
