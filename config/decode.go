package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// A decode stores one node of the file, or records what is wrong with it. It
// never sees an alias, which is resolved, nor null, which means not set.
type decode func(path string, n *yaml.Node)

// document walks a YAML file. Its errors name the line and the whole path,
// which decoding into structs does not.
type document struct {
	file string
	errs FieldErrors
	// lines is where each value stands that is set, by path.
	lines map[string]int
	// budget is how many values may still be visited. Aliases of aliases would
	// otherwise let a small file grow without bound.
	budget int
}

// maxValues is far above what any real configuration has.
const maxValues = 100_000

// at is the place of a field: its own line, or that of what should contain it.
func (d *document) at(path string) FieldError {
	for parent := path; ; {
		if line, ok := d.lines[parent]; ok {
			return FieldError{File: d.file, Line: line, Field: path}
		}
		end := strings.LastIndexAny(parent, ".[")
		if end < 0 {
			return FieldError{File: d.file, Field: path}
		}
		parent = parent[:end]
	}
}

// parse is the file's only document, or nil where there is nothing in it or
// where it is faulty.
func (d *document) parse(content []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(err)
		}
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		d.errs.add(FieldError{File: d.file, Line: second.Line}, "more than one YAML document: must be one")
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	return first.Content[0]
}

// syntax takes the line out of the YAML library's message.
func (d *document) syntax(err error) {
	at, problem := FieldError{File: d.file}, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		number, detail, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			at.Line, problem = line, detail
		}
	}
	// The one message that repeats the file's text, which may be a secret.
	if strings.HasPrefix(problem, "unknown anchor") {
		problem = "alias without its anchor"
	}
	d.errs.add(at, "YAML syntax: %s", problem)
}

// overBudget counts one value, faulty ones too, and reports whether to give up.
func (d *document) overBudget() bool {
	if d.budget == 0 {
		d.errs.add(FieldError{File: d.file}, "more than %d values: must be fewer, aliases counted wherever they stand", maxValues)
	}
	d.budget--
	return d.budget < 0
}

// value hands a node to its decoder.
func (d *document) value(path string, line int, n *yaml.Node, store decode) {
	// An anchor is never on an alias, so one step is enough.
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.ShortTag() == "!!null" {
		return
	}
	d.lines[path] = line
	store(path, n)
}

// expectKind records a fault unless the node is of the kind that is wanted.
func (d *document) expectKind(kind yaml.Kind, path string, n *yaml.Node) bool {
	if n.Kind == kind {
		return true
	}
	names := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
	d.errs.add(d.at(path), "must be %s, not %s", names[kind], names[n.Kind])
	return false
}

// list decodes each item of a list.
func (d *document) list(item decode) decode {
	return func(path string, n *yaml.Node) {
		if !d.expectKind(yaml.SequenceNode, path, n) {
			return
		}
		for i, child := range n.Content {
			if d.overBudget() {
				return
			}
			if child.ShortTag() == "!!null" {
				d.errs.add(FieldError{File: d.file, Line: child.Line, Field: fmt.Sprintf("%s[%d]", path, i)}, "must not be empty")
			}
			d.value(fmt.Sprintf("%s[%d]", path, i), child.Line, child, item)
		}
	}
}

// entries decodes a mapping with any keys.
func (d *document) entries(choose func(key string, at FieldError) decode) decode {
	return func(path string, n *yaml.Node) {
		if !d.expectKind(yaml.MappingNode, path, n) {
			return
		}
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content) && !d.overBudget(); i += 2 {
			key, child := n.Content[i], n.Content[i+1]
			at := FieldError{File: d.file, Line: key.Line, Field: join(path, key.Value)}
			first, twice := seen[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
				at.Field = path
				d.errs.add(at, "a key must be text: neither merge keys, aliases nor lists can be keys")
			case twice:
				d.errs.add(at, "already set in line %d", first)
			case forbiddenKey(at.Field) != "":
				d.errs.add(at, "%s", forbiddenKey(at.Field))
			default:
				if store := choose(key.Value, at); store != nil {
					d.value(at.Field, key.Line, child, store)
				}
			}
			if !twice {
				seen[key.Value] = key.Line
			}
		}
	}
}

// mapping decodes a mapping with known keys.
func (d *document) mapping(fields map[string]decode) decode {
	return d.entries(func(key string, at FieldError) decode {
		store, ok := fields[key]
		if !ok {
			d.errs.add(at, "unknown key: must be one of %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		return store
	})
}

// join is the path of a key. A key of any length would make a fault unreadable.
func join(path, key string) string {
	const longest = 64
	if len(key) > longest {
		key = strings.ToValidUTF8(key[:longest], "") + "..."
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// forbiddenKey is what to say of keys that hold a secret in the wrong place.
func forbiddenKey(path string) string {
	const credentials = "not allowed here: the API's credentials are tokens, and these belong to accounts"
	if strings.HasPrefix(path, "accounts[") && strings.HasSuffix(path, "].token") {
		return "not allowed here: a token belongs into a file of its own, which token_file names"
	}
	switch strings.ToLower(path) {
	case "api.http.authorization", "api.http.basic_auth", "api.http.bearer_token", "api.http.bearer_token_file",
		"api.http.oauth2", "api.http.http_headers.authorization":
		return credentials
	}
	return ""
}

// text takes any single value as it is written.
func (d *document) text(to *string) decode {
	return func(path string, n *yaml.Node) {
		if d.expectKind(yaml.ScalarNode, path, n) {
			*to = n.Value
		}
	}
}

const notBoolean = "must be true or false"

func (d *document) boolean(to *bool) decode {
	return func(path string, n *yaml.Node) {
		if d.expectKind(yaml.ScalarNode, path, n) && n.Decode(to) != nil {
			d.errs.add(d.at(path), notBoolean)
		}
	}
}

// integer leaves 0 behind where there is a fault.
func (d *document) integer(to *int, minValue, maxValue int) decode {
	return func(path string, n *yaml.Node) {
		*to = 0
		if !d.expectKind(yaml.ScalarNode, path, n) {
			return
		}
		var i int
		if n.ShortTag() != "!!int" || n.Decode(&i) != nil {
			d.errs.add(d.at(path), "must be a whole number")
			return
		}
		if i < minValue || i > maxValue {
			d.errs.add(d.at(path), "%d is out of range: must be %d to %d", i, minValue, maxValue)
			return
		}
		*to = i
	}
}

// duration leaves 0 behind where there is a fault. The reason says why there
// is a least one.
func (d *document) duration(to *time.Duration, minValue, maxValue time.Duration, reason string) decode {
	return func(path string, n *yaml.Node) {
		*to = 0
		if !d.expectKind(yaml.ScalarNode, path, n) {
			return
		}
		parsed, err := model.ParseDuration(n.Value)
		given := time.Duration(parsed)
		switch {
		case err != nil:
			d.errs.add(d.at(path), "not a duration: must be like 30s, 5m, 1h30m or 1d")
		case given < minValue:
			d.errs.add(d.at(path), "%s is too short: must be at least %s%s", parsed, model.Duration(minValue), reason)
		case given > maxValue:
			d.errs.add(d.at(path), "%s is too long: must be at most %s", parsed, model.Duration(maxValue))
		default:
			*to = given
		}
	}
}

// shape checks a node against a struct of another package, without storing
// anything: that package's own decoder knows neither paths nor, with this YAML
// library, unknown keys, and it repeats values that may be secret.
func (d *document) shape(t reflect.Type) decode {
	switch {
	case t.Kind() == reflect.Pointer:
		return d.shape(t.Elem())
	case t.Kind() == reflect.Slice:
		return d.list(d.shape(t.Elem()))
	case t.Kind() == reflect.Map:
		item := d.shape(t.Elem())
		return d.entries(func(string, FieldError) decode { return item })
	case t == reflect.TypeFor[promconfig.Headers]():
		return d.shape(reflect.TypeFor[map[string]promconfig.Header]())
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[promconfig.URL]():
		fields := map[string]decode{}
		d.structure(t, fields)
		return d.mapping(fields)
	}
	problem := "not a valid value"
	switch t {
	case reflect.TypeFor[bool]():
		problem = notBoolean
	case reflect.TypeFor[promconfig.URL]():
		problem = "not a URL: must be like http://proxy.example:3128"
	case reflect.TypeFor[promconfig.TLSVersion]():
		problem = "not a TLS version: must be one of " + strings.Join(slices.Sorted(maps.Keys(promconfig.TLSVersions)), ", ")
	}
	return func(path string, n *yaml.Node) {
		if d.expectKind(yaml.ScalarNode, path, n) && n.Decode(reflect.New(t).Interface()) != nil {
			d.errs.add(d.at(path), "%s", problem)
		}
	}
}

// structure collects a struct's keys, those of inlined structs included.
func (d *document) structure(t reflect.Type, fields map[string]decode) {
	for i := range t.NumField() {
		field := t.Field(i)
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			d.structure(field.Type, fields)
		case key != "":
			fields[key] = d.shape(field.Type)
		}
	}
}
