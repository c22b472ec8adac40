package collector

import (
	"cmp"
	"slices"
	"strings"
)

// Watch selects plans that somebody waits for: those that meet every criterion that
// is given. The values of one criterion are alternatives.
type Watch struct {
	Name     string   `yaml:"name"`  // unique, 1 to 256 bytes of UTF-8; value of the label watch
	Plans    []string `yaml:"plans"` // ids
	Families []string `yaml:"families"`
	// One location that offers the plan must meet these together: ids, regions as the
	// provider words them, and codes of two letters.
	Locations []string `yaml:"locations"`
	Regions   []string `yaml:"regions"`
	Countries []string `yaml:"countries"`
	GPU       *bool    `yaml:"gpu"`
	ECC       *bool    `yaml:"ecc"` // of the memory
	// Parts of the provider's texts, in any case of letters.
	CPUModels      []string `yaml:"cpu_models"`
	GPUModels      []string `yaml:"gpu_models"`
	Storage        []string `yaml:"storage"`
	Ports          []string `yaml:"ports"`
	ExcludePlans   []string `yaml:"exclude_plans"` // ids
	MinCores       *float64 `yaml:"min_cores"`     // bounds are inclusive
	MinThreads     *float64 `yaml:"min_threads"`
	MinBaseGHz     *float64 `yaml:"min_base_ghz"`
	MinMemoryGiB   *float64 `yaml:"min_memory_gib"`
	MaxUSDPerMonth *float64 `yaml:"max_usd_per_month"` // prices exclude VAT
	MaxEURPerMonth *float64 `yaml:"max_eur_per_month"`
}

// Inputs returns the collectors that the watch needs. Plans name their locations by id
// only, so that regions and countries need more.
func (w Watch) Inputs() []string {
	if len(w.Regions)+len(w.Countries) > 0 {
		return []string{"plans", "locations"}
	}
	return []string{"plans"}
}

// truth is whether something is so, in three-valued logic: min is AND, max is OR.
type truth int

const (
	mismatch truth = iota
	unknown        // not known, which is no match either
	match
)

// holds returns whether something is so; unknown if what it is about is not known.
func holds(known bool, is func() bool) truth {
	switch {
	case !known:
		return unknown
	case is():
		return match
	}
	return mismatch
}

// candidate is a plan in one of the locations that offer it, or in none of them.
type candidate struct {
	*plan
	id    locationID // empty for none
	place location   // empty if it is not known
}

// candidates returns a plan in each location that offers it, and in none: criteria for
// locations must be met by one location together.
func candidates(p *plan, locations LocationData) []candidate {
	all := []candidate{{plan: p}}
	for _, id := range p.Availability.Locations {
		all = append(all, candidate{p, id, locations[id]})
	}
	return all
}

// criterion is one of those that a watch gives. Its values are alternatives.
type criterion struct {
	name    string // in the configuration
	exclude bool   // a plan must have none of the values
	values  []value
}

type value struct {
	text string // as it is configured
	is   func(c candidate) truth
}

// criteria returns those that are given.
func (w Watch) criteria() []criterion {
	all := []criterion{
		texts("plans", w.Plans, func(c candidate, v string) truth { return same(c.ID, v) }),
		texts("families", w.Families, func(c candidate, v string) truth { return same(c.Family, v) }),
		texts("locations", w.Locations, func(c candidate, v string) truth { return c.placed(string(c.id), v) }),
		texts("regions", w.Regions, func(c candidate, v string) truth { return c.placed(c.place.Region, v) }),
		texts("countries", w.Countries, func(c candidate, v string) truth { return c.placed(c.place.CountryCode, v) }),
		single("gpu", boolLabel(w.GPU), func(c candidate) truth {
			return holds(!c.gpuUnknown, func() bool { return (c.GPU != nil) == *w.GPU })
		}),
		single("ecc", boolLabel(w.ECC), func(c candidate) truth {
			return holds(c.Memory.ECC != nil, func() bool { return *c.Memory.ECC == *w.ECC })
		}),
		texts("cpu_models", w.CPUModels, func(c candidate, v string) truth { return contains(c.CPU.Model, v) }),
		texts("gpu_models", w.GPUModels, func(c candidate, v string) truth {
			if c.GPU == nil && !c.gpuUnknown {
				return mismatch
			}
			return contains(cmp.Or(c.GPU, &gpu{}).Model, v)
		}),
		texts("storage", w.Storage, func(c candidate, v string) truth { return contains(c.Storage, v) }),
		texts("ports", w.Ports, func(c candidate, v string) truth { return contains(c.Network.Port, v) }),
		texts("exclude_plans", w.ExcludePlans, func(c candidate, v string) truth { return same(c.ID, v) }),
		single("min_cores", numberText(w.MinCores), func(c candidate) truth { return atLeast(c.CPU.Cores, *w.MinCores) }),
		single("min_threads", numberText(w.MinThreads), func(c candidate) truth { return atLeast(c.CPU.Threads, *w.MinThreads) }),
		single("min_base_ghz", numberText(w.MinBaseGHz), func(c candidate) truth { return atLeast(c.CPU.BaseGHz, *w.MinBaseGHz) }),
		single("min_memory_gib", numberText(w.MinMemoryGiB), func(c candidate) truth { return atLeast(c.Memory.SizeGB, *w.MinMemoryGiB) }), // the provider's GB are binary
		single("max_usd_per_month", numberText(w.MaxUSDPerMonth), func(c candidate) truth { return atMost(c.Price.Monthly.USD, *w.MaxUSDPerMonth) }),
		single("max_eur_per_month", numberText(w.MaxEURPerMonth), func(c candidate) truth { return atMost(c.Price.Monthly.EUR, *w.MaxEURPerMonth) }),
	}
	return slices.DeleteFunc(all, func(c criterion) bool { return len(c.values) == 0 })
}

// texts returns a criterion with the values that a watch gives.
func texts(name string, given []string, is func(candidate, string) truth) criterion {
	c := criterion{name: name, exclude: name == "exclude_plans"}
	for _, v := range given {
		c.values = append(c.values, value{v, func(one candidate) truth { return is(one, v) }})
	}
	return c
}

// single returns a criterion with one value, or without values if its text is empty.
func single(name, text string, is func(candidate) truth) criterion {
	if text == "" {
		return criterion{}
	}
	return criterion{name: name, values: []value{{text, is}}}
}

// same returns whether two texts are the same in any case of letters.
func same(text, v string) truth {
	return holds(text != "", func() bool { return strings.EqualFold(text, v) })
}

// placed is same for a text of the candidate's location.
func (c candidate) placed(text, v string) truth {
	if c.id == "" {
		return holds(c.Availability.Locations != nil && !c.locationsUnknown, func() bool { return false })
	}
	return same(text, v)
}

// contains returns whether a text contains another one in any case of letters.
func contains(text, v string) truth {
	return holds(text != "", func() bool { return strings.Contains(strings.ToLower(text), strings.ToLower(v)) })
}

func atLeast[T ~float64](n *T, v float64) truth {
	return holds(n != nil, func() bool { return float64(*n) >= v })
}

func atMost[T ~float64](n *T, v float64) truth {
	return holds(n != nil, func() bool { return float64(*n) <= v })
}

// meets returns whether the candidate meets a criterion.
func (c candidate) meets(given criterion) truth {
	result := mismatch
	for _, v := range given.values {
		result = max(result, v.is(c))
	}
	if given.exclude {
		return match - result
	}
	return result
}

// matches returns whether a plan meets all criteria.
func matches(criteria []criterion, p *plan, locations LocationData) truth {
	result := mismatch
	for _, c := range candidates(p, locations) {
		one := match
		for _, given := range criteria {
			one = min(one, c.meets(given))
		}
		result = max(result, one)
	}
	return result
}

// Unmet is a value of a criterion that no plan has, such as a misspelt one.
type Unmet struct{ Criterion, Value string }

// unmet returns the values that no plan meets by itself.
func unmet(criteria []criterion, plans []*plan, locations LocationData) (values []Unmet) {
	for _, given := range criteria {
		for _, v := range given.values {
			has := func(c candidate) bool { return v.is(c) != mismatch }
			if !slices.ContainsFunc(plans, func(p *plan) bool { return slices.ContainsFunc(candidates(p, locations), has) }) {
				values = append(values, Unmet{given.name, v.text})
			}
		}
	}
	return values
}
