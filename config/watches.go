package config

import (
	"errors"
	"reflect"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"server_rental_exporter/collector"
)

// maxBound is far above every number of a plan.
const maxBound = 1e15

func (l *loader) watch(path string, n *yaml.Node) {
	var w collector.Watch
	bound := func(target **float64) decodeFunc {
		return l.number(target, "must be a number", 0, maxBound, "!!int", "!!float")
	}
	before := len(l.errs)
	if !l.named(path, n, &w.Name, map[string]decodeFunc{
		"name":              l.value(&w.Name, notText),
		"plans":             l.alternatives(&w.Plans, validName, "invalid value: "+nameRule),
		"families":          l.alternatives(&w.Families, validName, "invalid value: "+nameRule),
		"locations":         l.alternatives(&w.Locations, validName, "invalid value: "+nameRule),
		"regions":           l.alternatives(&w.Regions, validName, "invalid value: "+nameRule),
		"countries":         l.alternatives(&w.Countries, countryCode.MatchString, "invalid country code: must be two letters, like DE"),
		"gpu":               l.value(&w.GPU, notBoolean),
		"min_cores":         bound(&w.MinCores),
		"min_memory_gib":    bound(&w.MinMemoryGiB),
		"max_usd_per_month": bound(&w.MaxUSDPerMonth),
		"max_eur_per_month": bound(&w.MaxEURPerMonth),
	}) {
		return
	}
	namePos := l.position(path + ".name")
	others := slices.ContainsFunc(l.errs[before:], func(err FieldError) bool { return err.Field != namePos.Field })
	if !others && reflect.DeepEqual(w, collector.Watch{Name: w.Name}) {
		l.errs.add(l.position(path), "no criterion: at least one must be set, because every plan would match")
	}
	l.addName(l.watchNames, w.Name, namePos)
	l.config.Watches = append(l.config.Watches, w)
}

var countryCode = regexp.MustCompile(`^[A-Za-z]{2}$`)

// alternatives decodes a list of one or more values.
func (l *loader) alternatives(target *[]string, valid func(string) bool, invalid string) decodeFunc {
	list := l.list(l.scalar(func(n *yaml.Node) error {
		*target = append(*target, n.Value)
		if !valid(n.Value) {
			return errors.New(invalid)
		}
		return nil
	}))
	return func(path string, n *yaml.Node) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			l.errs.add(l.position(path), "empty list: must have at least one value")
		}
		list(path, n)
	}
}
