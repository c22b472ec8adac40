package collector

import (
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

// candidate is a plan in one of the locations that offer it, or in none of them.
type candidate struct {
	*plan
	id    locationID // empty for none
	place location   // empty if it is not known
}

// matches returns whether a plan meets all criteria in one location, and whether it may meet them,
// given what was not understood of it.
func (w Watch) matches(p *plan, locations LocationData) (meets, mayMeet bool) {
	meets, mayMeet = w.matchesCandidate(candidate{plan: p})
	for _, id := range p.Availability.Locations {
		here, mayHere := w.matchesCandidate(candidate{p, id, locations[id]})
		meets, mayMeet = meets || here, mayMeet || mayHere
	}
	return meets, mayMeet
}

// matchesCandidate is matches for one candidate.
func (w Watch) matchesCandidate(c candidate) (meets, mayMeet bool) {
	meets, mayMeet = true, true
	for _, criterion := range w.criteria(c) {
		meets = meets && criterion.isMet
		mayMeet = mayMeet && (criterion.isMet || criterion.unknown || c.isUnclear(criterion.field))
	}
	return meets, mayMeet
}

// criterion is the outcome of one criterion for a candidate.
type criterion struct {
	isMet   bool   // true if the watch does not have the criterion, false if the value is not known
	field   string // path of the plan's field
	unknown bool   // whether the value of the location is not known
}

// criteria returns the outcomes of all criteria for a candidate: an array, which takes no memory.
func (w Watch) criteria(c candidate) [18]criterion {
	return [18]criterion{
		{equalsOne(c.ID, w.Plans), "id", false},
		{equalsOne(c.Family, w.Families), "family", false},
		{equalsOne(string(c.id), w.Locations), "availability.locations", false},
		{equalsOne(c.place.Region, w.Regions), "availability.locations", c.id != "" && c.place.Region == ""},
		{equalsOne(c.place.CountryCode, w.Countries), "availability.locations", c.id != "" && c.place.CountryCode == ""},
		{w.GPU == nil || (c.GPU != gpu{}) == *w.GPU && (*w.GPU || !c.isUnclear("gpu")), "gpu", false},
		{w.ECC == nil || c.Memory.ECC != nil && *c.Memory.ECC == *w.ECC, "memory.ecc", false},
		{containsOne(c.CPU.Model, w.CPUModels), "cpu.model", false},
		{containsOne(c.GPU.Model, w.GPUModels), "gpu", false},
		{containsOne(c.Storage, w.Storage), "storage", false},
		{containsOne(c.Network.Port, w.Ports), "network.port", false},
		{len(w.ExcludePlans) == 0 || !equalsOne(c.ID, w.ExcludePlans), "id", false},
		{isAtLeast(c.CPU.Cores, w.MinCores), "cpu.cores", false},
		{isAtLeast(c.CPU.Threads, w.MinThreads), "cpu.threads", false},
		{isAtLeast(c.CPU.BaseGHz, w.MinBaseGHz), "cpu.base_ghz", false},
		{isAtLeast(c.Memory.SizeGB, w.MinMemoryGiB), "memory.size_gb", false}, // the provider's GB are binary
		{isAtMost(c.Price.Monthly.USD, w.MaxUSDPerMonth), "price.monthly.usd", false},
		{isAtMost(c.Price.Monthly.EUR, w.MaxEURPerMonth), "price.monthly.eur", false},
	}
}

// equalsOne returns whether a text equals one of the values in any case of letters, or there is none.
func equalsOne(text string, values []string) bool {
	return len(values) == 0 || slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(text, v) })
}

// containsOne returns whether a text contains one of the values in any case of letters, or there is
// none.
func containsOne(text string, values []string) bool {
	return len(values) == 0 || slices.ContainsFunc(values, func(v string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(v))
	})
}

func isAtLeast[T ~float64](n *T, bound *float64) bool {
	return bound == nil || n != nil && float64(*n) >= *bound
}

func isAtMost(n *price, bound *float64) bool {
	return bound == nil || n != nil && float64(*n) <= *bound
}
