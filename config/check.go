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

// checkRange reports whether a setting is between two bounds. If not, it adds an error with a
// reason.
func checkRange[T cmp.Ordered](l *loader, path string, value, least, most T, reason string) bool {
	if value >= least && value <= most {
		return true
	}
	l.add(l.at(path), "%v is out of range: must be from %v to %v%s", value, least, most, reason)
	return false
}

// checkCollectors checks that something is exported, within the rate limits.
func (l *loader) checkCollectors() {
	hasAccounts := l.flags.Demo || len(l.config.Accounts)+len(l.file.Accounts)+len(l.file.AccountFiles) > 0
	exports := false
	for i, r := range l.flags.resources {
		settings := l.checkCollector(r, l.flags.toggles[i])
		l.config.Collectors[r.Name] = settings
		exports = exports || settings.Enabled && (hasAccounts || !r.Account)
	}
	if !exports {
		l.add(l.at("collectors"), "nothing to export: at least one collector must be enabled, and an account be set if it requires one")
	}
	l.checkRateLimit("api.rate_limit.public", l.config.RequestRate(l.flags.resources, false))
	if hasAccounts {
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
	least, reason := Duration(time.Second), ""
	if cached := Duration(r.MinInterval); cached > least {
		least, reason = cached, ", because the API caches the response that long"
	}
	if d := file.Interval; d != nil {
		if !checkRange(l, path+".interval", *d, least, maxInterval, reason) {
			return settings
		}
		settings.Interval = time.Duration(*d)
	}
	settings.MaxAge = max(r.MaxAge, 3*settings.Interval)
	if d := file.MaxAge; d != nil && checkRange(l, path+".max_age", *d, Duration(settings.Interval), maxMaxAge, ", because it is at least the interval") {
		settings.MaxAge = time.Duration(*d)
	}
	settings.SoldOutInterval = min(settings.SoldOutInterval, settings.Interval)
	switch d := file.SoldOutInterval; {
	case d == nil:
	case r.SoldOutInterval == 0:
		l.add(l.at(path+".sold_out_interval"), "not allowed: the collector has nothing that is sold out")
	case *d == 0:
		settings.SoldOutInterval = settings.Interval
	case checkRange(l, path+".sold_out_interval", *d, minSoldOut, Duration(settings.Interval), ", or 0s for the interval"):
		settings.SoldOutInterval = time.Duration(*d)
	}
	return settings
}

func (l *loader) checkRateLimit(path string, rate Rate) {
	// The margin allows for the rounding of sums such as three times 4/3.
	const margin = 1e-9
	if least := math.Ceil(rate.PerMinute - margin); rate.Limit > 0 && float64(rate.Limit) < least {
		l.add(l.at(path), "%d is too low: must be at least %.0f, %d more than the %.4g requests that the collectors make in a minute",
			rate.Limit+Burst, least+Burst, Burst, rate.PerMinute)
	}
}

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
				l.checkAlternatives(setting, value)
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

var (
	countryCode = regexp.MustCompile(`^[A-Za-z]{2}$`)
	countries   = regexp.MustCompile(`\.countries$`)
)

// checkAlternatives checks the values of one criterion of a watch; nil is no criterion.
func (l *loader) checkAlternatives(path string, values []string) {
	if values != nil && len(values) == 0 {
		l.add(l.at(path), "empty list: must have at least one value")
	}
	if i := slices.IndexFunc(values, func(v string) bool { return !validName(v) }); i >= 0 {
		l.add(l.at(fmt.Sprintf("%s[%d]", path, i)), "invalid value: %s", nameRule)
	}
	if i := slices.IndexFunc(values, func(v string) bool { return !countryCode.MatchString(v) }); i >= 0 && countries.MatchString(path) {
		l.add(l.at(fmt.Sprintf("%s[%d]", path, i)), "invalid country code: must be two letters, like DE")
	}
}
