package collector

import (
	"cmp"
	"fmt"
	"reflect"
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

// truth is whether a criterion is met, in three-valued logic: min is AND, max is OR.
type truth int

const (
	mismatch truth = iota
	unknown        // not known, which is no match either
	match
)

// criterion returns whether a criterion is met: always if it is not given, and unknown if what
// it is about is not known.
func criterion(given, known bool, met func() bool) truth {
	switch {
	case !given:
		return match
	case !known:
		return unknown
	case met():
		return match
	}
	return mismatch
}

// matches returns whether a plan meets all criteria.
func (w Watch) matches(p *plan, locations LocationData) truth {
	card := cmp.Or(p.GPU, &gpu{})
	return min(
		oneOf(w.Plans, p.ID),
		criterion(len(w.ExcludePlans) > 0, true, func() bool { return oneOf(w.ExcludePlans, p.ID) == mismatch }),
		oneOf(w.Families, p.Family),
		w.offered(p, locations),
		criterion(w.GPU != nil, !p.gpuUnknown, func() bool { return *w.GPU == (p.GPU != nil) }),
		criterion(w.ECC != nil, p.Memory.ECC != nil, func() bool { return *w.ECC == *p.Memory.ECC }),
		partOf(w.CPUModels, p.CPU.Model != "", p.CPU.Model),
		partOf(w.GPUModels, card.Model != "" || p.GPU == nil && !p.gpuUnknown, card.Model),
		partOf(w.Storage, p.Storage != "", p.Storage),
		partOf(w.Ports, p.Network.Port != "", p.Network.Port),
		within(p.CPU.Cores, w.MinCores, nil),
		within(p.CPU.Threads, w.MinThreads, nil),
		within(p.CPU.BaseGHz, w.MinBaseGHz, nil),
		within(p.Memory.SizeGB, w.MinMemoryGiB, nil), // the provider's GB are binary
		within(p.Price.Monthly.USD, nil, w.MaxUSDPerMonth),
		within(p.Price.Monthly.EUR, nil, w.MaxEURPerMonth),
	)
}

// offered returns whether one location that offers the plan meets all criteria for
// locations.
func (w Watch) offered(p *plan, locations LocationData) truth {
	given := len(w.Locations)+len(w.Regions)+len(w.Countries) > 0
	result := criterion(given, p.Availability.Locations != nil, func() bool { return false })
	for _, id := range p.Availability.Locations {
		l := locations[id]
		result = max(result, min(oneOf(w.Locations, string(id)), oneOf(w.Regions, l.Region), oneOf(w.Countries, l.CountryCode)))
	}
	return result
}

// oneOf returns whether a value is one of the alternatives, in any case of letters,
// or there are none.
func oneOf(alternatives []string, value string) truth {
	return criterion(len(alternatives) > 0, value != "", func() bool {
		return slices.ContainsFunc(alternatives, func(a string) bool { return strings.EqualFold(a, value) })
	})
}

// partOf returns whether one of the alternatives is a part of a text, in any case of letters,
// or there are none.
func partOf(alternatives []string, known bool, text string) truth {
	return criterion(len(alternatives) > 0, known, func() bool {
		return slices.ContainsFunc(alternatives, func(a string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(a)) })
	})
}

// within returns whether a value is at least and at most a bound; nil is no bound.
func within[T ~float64](value *T, least, most *float64) truth {
	return criterion(least != nil || most != nil, value != nil, func() bool {
		return (least == nil || float64(*value) >= *least) && (most == nil || float64(*value) <= *most)
	})
}

// Unmet is a value of a criterion that no plan has, such as a misspelt one.
type Unmet struct{ Criterion, Value string }

// unmet returns the values of the watch that no plan meets by itself.
func (w Watch) unmet(plans []*plan, locations LocationData) (values []Unmet) {
	for field, given := range reflect.ValueOf(w).Fields() {
		var alone Watch // with one criterion that has one value
		criterion := reflect.ValueOf(&alone).Elem().FieldByIndex(field.Index)
		check := func(one, value reflect.Value) {
			criterion.Set(one)
			alone.Plans, alone.ExcludePlans = slices.Concat(alone.Plans, alone.ExcludePlans), nil
			if !slices.ContainsFunc(plans, func(p *plan) bool { return alone.matches(p, locations) != mismatch }) {
				values = append(values, Unmet{field.Tag.Get("yaml"), fmt.Sprint(value)})
			}
		}
		switch {
		case given.Kind() == reflect.Slice:
			for i := range given.Len() {
				alone = Watch{}
				check(given.Slice(i, i+1), given.Index(i))
			}
		case given.Kind() == reflect.Pointer && !given.IsNil():
			check(given, given.Elem())
		}
	}
	return values
}
