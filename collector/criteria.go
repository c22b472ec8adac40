package collector

import (
	"cmp"
	"slices"
	"strings"
)

// Watch selects plans by criteria, which must all be met. The values of one criterion are
// alternatives.
type Watch struct {
	Name     string   `yaml:"name"`  // unique, 1 to 256 bytes of UTF-8; value of the label watch
	Plans    []string `yaml:"plans"` // ids
	Families []string `yaml:"families"`
	// One location that offers the plan must meet the next three: ids, regions as the provider words
	// them, and codes of two letters.
	Locations []string `yaml:"locations"`
	Regions   []string `yaml:"regions"`
	Countries []string `yaml:"countries"`
	GPU       *bool    `yaml:"gpu"`
	ECC       *bool    `yaml:"ecc"` // error correction of the memory
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

// Inputs returns the names of the collectors that the watch needs. Plans name their locations by id
// only, so that regions and countries need more.
func (w Watch) Inputs() []string {
	if len(w.Regions)+len(w.Countries) > 0 {
		return []string{"plans", "locations"}
	}
	return []string{"plans"}
}

// outcome says whether a plan meets a criterion, or all of them; the larger one decides.
type outcome int

const (
	isMet     outcome = iota
	isUnknown         // the value is not known
	isUnmet
)

// match returns whether a plan meets all criteria in one location.
func (w Watch) match(p *plan, locations LocationData) outcome {
	if len(w.GPUModels) > 0 { // a plan without GPU has no model, which is known
		w.GPU = cmp.Or(w.GPU, new(true))
	}
	best := isUnmet
	if p.offersOther || len(w.Locations)+len(w.Regions)+len(w.Countries) == 0 { // not known, or of no interest
		best = w.matchIn("", location{}, p)
	}
	for _, id := range p.Availability.Locations {
		best = min(best, w.matchIn(id, locations[id], p))
	}
	return best
}

// matchIn is match for a plan in one location, of which empty fields are not known.
func (w Watch) matchIn(id locationID, place location, p *plan) outcome {
	return max(
		outcomeOf(len(w.ExcludePlans) > 0, true, oneOf(p.ID, w.ExcludePlans, strings.EqualFold) == isUnmet),
		oneOf(p.ID, w.Plans, strings.EqualFold),
		oneOf(p.Family, w.Families, strings.EqualFold),
		oneOf(string(id), w.Locations, strings.EqualFold),
		oneOf(place.Region, w.Regions, strings.EqualFold),
		oneOf(place.CountryCode, w.Countries, strings.EqualFold),
		equals(p.hasGPU, w.GPU),
		equals(p.Memory.ECC, w.ECC),
		oneOf(p.CPU.Model, w.CPUModels, containsFold),
		oneOf(p.GPU.Model, w.GPUModels, containsFold),
		oneOf(p.Storage, w.Storage, containsFold),
		oneOf(p.Network.Port, w.Ports, containsFold),
		isWithin(p.CPU.Cores, w.MinCores, nil),
		isWithin(p.CPU.Threads, w.MinThreads, nil),
		isWithin(p.CPU.BaseGHz, w.MinBaseGHz, nil),
		isWithin(p.Memory.SizeGB, w.MinMemoryGiB, nil), // the provider's GB are binary
		isWithin(p.Price.Monthly.USD, nil, w.MaxUSDPerMonth),
		isWithin(p.Price.Monthly.EUR, nil, w.MaxEURPerMonth),
	)
}

// outcomeOf returns the outcome of a criterion that a watch may not have, for a value that may not be
// known.
func outcomeOf(hasCriterion, isKnown, isGood bool) outcome {
	switch {
	case !hasCriterion || isKnown && isGood:
		return isMet
	case isKnown:
		return isUnmet
	}
	return isUnknown
}

func oneOf(text string, values []string, matches func(text, value string) bool) outcome {
	isGood := slices.ContainsFunc(values, func(v string) bool { return matches(text, v) })
	return outcomeOf(len(values) > 0, text != "", isGood)
}

func containsFold(text, value string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(value))
}

func equals(value, wanted *bool) outcome {
	return outcomeOf(wanted != nil, value != nil, wanted != nil && value != nil && *value == *wanted)
}

func isWithin[T ~float64](n *T, least, most *float64) outcome {
	isGood := n != nil && (least == nil || float64(*n) >= *least) && (most == nil || float64(*n) <= *most)
	return outcomeOf(least != nil || most != nil, n != nil, isGood)
}
