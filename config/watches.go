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
	bound := func(target *float64) decodeFunc { return number(&l.document, target, 0, maxBound) }
	before := len(l.errs)
	if !l.named(path, n, &w.Name, map[string]decodeFunc{
		"name":              l.text(&w.Name),
		"plans":             l.alternatives(&w.Plans, checkText),
		"families":          l.alternatives(&w.Families, checkText),
		"locations":         l.alternatives(&w.Locations, checkText),
		"regions":           l.alternatives(&w.Regions, checkText),
		"countries":         l.alternatives(&w.Countries, checkCountry),
		"gpu":               optional(&w.GPU, l.boolean),
		"min_cores":         optional(&w.MinCores, bound),
		"min_memory_gib":    optional(&w.MinMemoryGiB, bound),
		"max_usd_per_month": optional(&w.MaxUSDPerMonth, bound),
		"max_eur_per_month": optional(&w.MaxEURPerMonth, bound),
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

// alternatives decodes a list of one or more values.
func (l *loader) alternatives(target *[]string, check func(string) error) decodeFunc {
	item := l.scalar(func(n *yaml.Node) error {
		*target = append(*target, n.Value)
		return check(n.Value)
	})
	list := l.list(item)
	return func(path string, n *yaml.Node) {
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			l.errs.add(l.position(path), "empty list: must have at least one value")
		}
		list(path, n)
	}
}

func checkText(value string) error {
	if !validName(value) {
		return errors.New("invalid value: " + nameRule)
	}
	return nil
}

var countryCode = regexp.MustCompile(`^[A-Za-z]{2}$`)

func checkCountry(value string) error {
	if !countryCode.MatchString(value) {
		return errors.New("invalid country code: must be two letters, like DE")
	}
	return nil
}
