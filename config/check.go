package config

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"time"

	"server_rental_exporter/collector"
)

// Bounds of the settings.
const (
	maxInterval = Duration(30 * 24 * time.Hour)
	maxMaxAge   = Duration(365 * 24 * time.Hour)
	minSoldOut  = Duration(2 * time.Second)
)

// checkRange reports whether a setting is between two bounds. If not, it adds an error.
func checkRange[T cmp.Ordered](l *loader, path string, value, least, most T) bool {
	if value >= least && value <= most {
		return true
	}
	l.add(l.at(path), "%v is out of range: must be from %v to %v", value, least, most)
	return false
}

// checkCollectors checks the settings of all collectors, and that they are within the rate
// limits together.
func (l *loader) checkCollectors() {
	for i, r := range l.flags.resources {
		l.config.Collectors[r.Name] = l.checkCollector(r, l.flags.toggles[i])
	}
	l.checkRateLimit("api.rate_limit.public", l.config.RequestRate(l.flags.resources, false))
	if len(l.config.Accounts) > 0 {
		l.checkRateLimit("api.rate_limit.account", l.config.RequestRate(l.flags.resources, true))
	}
}

// checkCollector returns the settings of a collector: the defaults, then those of the file,
// then the flag. One that is out of range has its default.
func (l *loader) checkCollector(r collector.Resource, flag toggle) Collector {
	file, path := l.file.Collectors[CollectorName(r.Name)], "collectors."+r.Name
	settings := Collector{Enabled: !l.flags.disableDefaults, Interval: r.Interval, SoldOutInterval: r.SoldOutInterval}
	if file.Enabled != nil {
		settings.Enabled = *file.Enabled
	}
	if flag.isSet {
		settings.Enabled = flag.enabled
	}
	if d := file.Interval; d != nil {
		least := max(Duration(time.Second), Duration(r.MinInterval)) // how long the API caches the response
		if !checkRange(l, path+".interval", *d, least, maxInterval) {
			return settings
		}
		settings.Interval = time.Duration(*d)
	}
	settings.MaxAge = max(r.MaxAge, 3*settings.Interval)
	if d := file.MaxAge; d != nil && checkRange(l, path+".max_age", *d, 2*Duration(settings.Interval), maxMaxAge) {
		settings.MaxAge = time.Duration(*d)
	}
	settings.SoldOutInterval = min(settings.SoldOutInterval, settings.Interval)
	switch d := file.SoldOutInterval; {
	case d == nil:
	case r.SoldOutInterval == 0:
		l.add(l.at(path+".sold_out_interval"), "not allowed: the collector has nothing that is sold out")
	case *d == 0:
		settings.SoldOutInterval = settings.Interval
	case checkRange(l, path+".sold_out_interval", *d, minSoldOut, Duration(settings.Interval)):
		settings.SoldOutInterval = time.Duration(*d)
	}
	return settings
}

func (l *loader) checkRateLimit(path string, rate Rate) {
	// The margin allows for the rounding of sums such as three times 4/3.
	const margin = 1e-9
	if least := math.Ceil(rate.PerMinute - margin); rate.Limit > 0 && float64(rate.Limit) < least {
		l.add(l.at(path), "%d is too low: must be at least %.0f, %d more than the %.4g requests that the collectors make in a minute",
			rate.Limit+collector.Burst, least+collector.Burst, collector.Burst, rate.PerMinute)
	}
}

// countryCode is an ISO 3166 code as the provider has them, in any case of letters.
var countryCode = regexp.MustCompile(`^[A-Za-z]{2}$`)

// checkWatches checks the watches of the file.
func (l *loader) checkWatches() {
	l.config.Watches = l.file.Watches
	for i, w := range l.file.Watches {
		path := fmt.Sprintf("watches[%d]", i)
		l.addName("watch", w.Name, l.at(path+".name"))
		if reflect.DeepEqual(w, collector.Watch{Name: w.Name}) {
			l.add(l.at(path), "no criterion: at least one must be set, because every plan would match")
		}
		for field, criterion := range reflect.ValueOf(w).Fields() {
			setting := path + "." + field.Tag.Get("yaml")
			switch value := criterion.Interface().(type) {
			case []string:
				if setting == path+".countries" && slices.ContainsFunc(value, func(v string) bool { return !countryCode.MatchString(v) }) {
					l.add(l.at(setting), "invalid list: each must be a country code of two letters")
				} else if value != nil && len(value) == 0 || slices.ContainsFunc(value, func(v string) bool { return !validName(v) }) {
					l.add(l.at(setting), "invalid list: must have at least one value, and each must be %s", nameRule)
				}
			case *float64:
				if value != nil && !(*value >= 0 && *value <= math.MaxFloat64) {
					l.add(l.at(setting), "%v is out of range: must be at least 0", *value)
				}
			}
		}
		for _, needed := range w.Inputs() {
			if !l.config.Collectors[needed].Enabled {
				l.add(l.at(path), "no data: its criteria need the collector %s, which must be enabled", needed)
			}
		}
	}
}
