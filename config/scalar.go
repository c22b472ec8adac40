package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// scalar decodes a single value. The errors of parse must not repeat secrets.
func (d *document) scalar(parse func(n *yaml.Node) error) decodeFunc {
	return func(path string, n *yaml.Node) {
		if !d.expectKind(yaml.ScalarNode, path, n) {
			return
		}
		if err := parse(n); err != nil {
			d.errs.add(d.position(path), "%s", err)
		}
	}
}

// text accepts any single value, as it is written.
func (d *document) text(target *string) decodeFunc {
	return d.scalar(func(n *yaml.Node) error {
		*target = n.Value
		return nil
	})
}

var errNotBoolean = errors.New("must be true or false")

func (d *document) boolean(target *bool) decodeFunc {
	return d.scalar(func(n *yaml.Node) error {
		if n.Decode(target) != nil {
			return errNotBoolean
		}
		return nil
	})
}

func (d *document) integer(target *int, minValue, maxValue int) decodeFunc {
	return d.scalar(func(n *yaml.Node) error {
		var i int
		if n.ShortTag() != "!!int" || n.Decode(&i) != nil {
			return errors.New("must be an integer")
		}
		if i < minValue || i > maxValue {
			return fmt.Errorf("%d is out of range: must be from %d to %d", i, minValue, maxValue)
		}
		*target = i
		return nil
	})
}

// duration appends the reason to the message about minValue.
func (d *document) duration(target *time.Duration, minValue, maxValue time.Duration, reason string) decodeFunc {
	return d.scalar(func(n *yaml.Node) error {
		parsed, err := model.ParseDuration(n.Value)
		if err != nil {
			return errors.New("invalid duration: must be like 30s, 5m, 1h30m or 1d")
		}
		switch value := time.Duration(parsed); {
		case value < minValue:
			return fmt.Errorf("%s is too short: must be at least %s%s", parsed, model.Duration(minValue), reason)
		case value > maxValue:
			return fmt.Errorf("%s is too long: must be at most %s", parsed, model.Duration(maxValue))
		}
		*target = time.Duration(parsed)
		return nil
	})
}

// check validates a node against a type of another package and stores nothing.
// That package's own decoder has no paths, ignores unknown keys with this YAML
// library, and its errors repeat values that may be secret.
func (d *document) check(t reflect.Type) decodeFunc {
	switch {
	case t.Kind() == reflect.Pointer:
		return d.check(t.Elem())
	case t.Kind() == reflect.Slice:
		return d.list(d.check(t.Elem()))
	case t.Kind() == reflect.Map:
		item := d.check(t.Elem())
		return d.entries(func(string, Position) decodeFunc { return item })
	case t == reflect.TypeFor[promconfig.Headers]():
		return d.check(reflect.TypeFor[map[string]promconfig.Header]())
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[promconfig.URL]():
		return d.mapping(d.structFields(t))
	}
	invalid := errors.New("invalid value")
	switch t {
	case reflect.TypeFor[bool]():
		invalid = errNotBoolean
	case reflect.TypeFor[promconfig.URL]():
		invalid = errors.New("invalid URL: must be like http://proxy.example:3128")
	case reflect.TypeFor[promconfig.TLSVersion]():
		invalid = fmt.Errorf("invalid TLS version: must be one of %s", strings.Join(slices.Sorted(maps.Keys(promconfig.TLSVersions)), ", "))
	}
	return d.scalar(func(n *yaml.Node) error {
		if n.Decode(reflect.New(t).Interface()) != nil {
			return invalid
		}
		return nil
	})
}

// structFields returns the keys of a struct, with those of inlined structs.
func (d *document) structFields(t reflect.Type) map[string]decodeFunc {
	fields := map[string]decodeFunc{}
	for field := range t.Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			maps.Copy(fields, d.structFields(field.Type))
		case key != "":
			fields[key] = d.check(field.Type)
		}
	}
	return fields
}
