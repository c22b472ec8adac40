package collector

import (
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

// Inputs returns the collectors that the watch needs. Plans name their locations by id
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

// candidates returns a plan in each location that offers it: criteria for locations must be met
// by one location together.
func candidates(p *plan, locations LocationData) []candidate {
	all := []candidate{{plan: p}}
	for _, id := range p.Availability.Locations {
		all = append(all, candidate{p, id, locations[id]})
	}
	return all
}

// criterion is one of those that a watch gives. Its values are alternatives.
type criterion struct {
	name    string                   // setting of the configuration
	field   string                   // path of the plan's field
	exclude bool                     // a plan must have none of the values
	values  []func(c candidate) bool // false if it is not known
}

// criteria returns those that are given.
func (w Watch) criteria() []criterion {
	all := []criterion{
		texts("plans", "id", w.Plans, func(c candidate, v string) bool { return strings.EqualFold(c.ID, v) }),
		texts("families", "family", w.Families, func(c candidate, v string) bool { return strings.EqualFold(c.Family, v) }),
		texts("locations", "availability.locations", w.Locations, func(c candidate, v string) bool { return strings.EqualFold(string(c.id), v) }),
		texts("regions", "availability.locations", w.Regions, func(c candidate, v string) bool { return strings.EqualFold(c.place.Region, v) }),
		texts("countries", "availability.locations", w.Countries, func(c candidate, v string) bool { return strings.EqualFold(c.place.CountryCode, v) }),
		single("gpu", "gpu", w.GPU, func(c candidate) bool { return (c.GPU != gpu{}) == *w.GPU && (*w.GPU || !c.isUnclear("gpu")) }),
		single("ecc", "memory.ecc", w.ECC, func(c candidate) bool { return c.Memory.ECC != nil && *c.Memory.ECC == *w.ECC }),
		texts("cpu_models", "cpu.model", w.CPUModels, func(c candidate, v string) bool { return contains(c.CPU.Model, v) }),
		texts("gpu_models", "gpu", w.GPUModels, func(c candidate, v string) bool { return contains(c.GPU.Model, v) }),
		texts("storage", "storage", w.Storage, func(c candidate, v string) bool { return contains(c.Storage, v) }),
		texts("ports", "network.port", w.Ports, func(c candidate, v string) bool { return contains(c.Network.Port, v) }),
		texts("exclude_plans", "id", w.ExcludePlans, func(c candidate, v string) bool { return strings.EqualFold(c.ID, v) }),
		single("min_cores", "cpu.cores", w.MinCores, func(c candidate) bool { return atLeast(c.CPU.Cores, *w.MinCores) }),
		single("min_threads", "cpu.threads", w.MinThreads, func(c candidate) bool { return atLeast(c.CPU.Threads, *w.MinThreads) }),
		single("min_base_ghz", "cpu.base_ghz", w.MinBaseGHz, func(c candidate) bool { return atLeast(c.CPU.BaseGHz, *w.MinBaseGHz) }),
		single("min_memory_gib", "memory.size_gb", w.MinMemoryGiB, func(c candidate) bool { return atLeast(c.Memory.SizeGB, *w.MinMemoryGiB) }), // the provider's GB are binary
		single("max_usd_per_month", "price.monthly.usd", w.MaxUSDPerMonth, func(c candidate) bool { return atMost(c.Price.Monthly.USD, *w.MaxUSDPerMonth) }),
		single("max_eur_per_month", "price.monthly.eur", w.MaxEURPerMonth, func(c candidate) bool { return atMost(c.Price.Monthly.EUR, *w.MaxEURPerMonth) }),
	}
	return slices.DeleteFunc(all, func(c criterion) bool { return len(c.values) == 0 })
}

// texts returns a criterion with the values that a watch gives.
func texts(name, field string, given []string, holds func(candidate, string) bool) criterion {
	all := criterion{name: name, field: field, exclude: name == "exclude_plans"}
	for _, v := range given {
		all.values = append(all.values, func(c candidate) bool { return holds(c, v) })
	}
	return all
}

// single returns a criterion with one value, or without values if it is not given.
func single[T any](name, field string, given *T, holds func(candidate) bool) criterion {
	if given == nil {
		return criterion{}
	}
	return criterion{name: name, field: field, values: []func(candidate) bool{holds}}
}

// contains returns whether a text contains another one in any case of letters.
func contains(text, v string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(v))
}

func atLeast[T ~float64](n *T, v float64) bool { return n != nil && float64(*n) >= v }

func atMost(n *price, v float64) bool { return n != nil && float64(*n) <= v }

// meets returns whether the candidate has one of the values, or none of those to exclude.
func (c candidate) meets(given criterion) bool {
	return slices.ContainsFunc(given.values, func(holds func(candidate) bool) bool { return holds(c) }) != given.exclude
}

// mayMeet returns whether the candidate meets a criterion, or may by what was not understood of it.
func (c candidate) mayMeet(given criterion) bool {
	return c.meets(given) || c.isUnclear(given.field) ||
		c.id != "" && (given.name == "regions" && c.place.Region == "" || given.name == "countries" && c.place.CountryCode == "")
}

// matches returns whether a plan meets all criteria in one location.
func matches(criteria []criterion, p *plan, locations LocationData, meets func(candidate, criterion) bool) bool {
	return slices.ContainsFunc(candidates(p, locations), func(c candidate) bool {
		return !slices.ContainsFunc(criteria, func(given criterion) bool { return !meets(c, given) })
	})
}
