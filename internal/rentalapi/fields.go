package rentalapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxTextBytes bounds a text field. Longer ones cannot become label values: it is
// the usual limit of long-term stores, which refuse a whole write over a longer one.
const maxTextBytes = 2048

// FieldError is a field of a response that was not understood. It never contains the
// value that was found.
type FieldError struct {
	Field   string // path in the API, for example cpu.cores; empty for the whole value
	Problem string // for example "not an integer"
}

// Error says which field is wrong and why.
func (e FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Absent returns whether the field has no value at all.
func (e FieldError) Absent() bool { return e.Problem == problemMissing || e.Problem == problemNull }

const (
	problemMissing = "missing"
	problemNull    = "null"
)

// Expecter is implemented by field types that describe in words which values they
// accept, for example "a number of 0 or more".
type Expecter interface{ Expected() string }

// maxElements bounds the elements of an array and the members of a map in one item.
const maxElements = 1_000

// decodeFields decodes a JSON value into the struct that into points to. A field that is
// not understood keeps its zero value and is returned as an error; all others are set. A
// field that is missing or null is an error too, unless it has the tag api:"optional".
//
// Names must be exact, unlike those of encoding/json, and the last of several counts, so
// that everybody reads the same value.
func decodeFields(raw json.RawMessage, into any) []FieldError {
	var d fieldDecoder
	d.decode("", raw, reflect.ValueOf(into).Elem())
	return d.errs
}

// fieldDecoder decodes field by field, which encoding/json does only up to the first
// error of a type with its own decoding.
type fieldDecoder struct{ errs []FieldError }

func (d *fieldDecoder) fail(path, problem string) {
	d.errs = append(d.errs, FieldError{path, problem})
}

// decode returns false if nothing of the value was understood.
func (d *fieldDecoder) decode(path string, raw json.RawMessage, v reflect.Value) bool {
	_, custom := v.Addr().Interface().(json.Unmarshaler)
	switch {
	case isNull(raw):
		d.fail(path, problemNull)
		return false
	case custom:
		return d.leaf(path, raw, v)
	case v.Kind() == reflect.Pointer:
		value := reflect.New(v.Type().Elem())
		if !d.decode(path, raw, value.Elem()) {
			return false
		}
		v.Set(value)
		return true
	case v.Kind() == reflect.Struct:
		return d.object(path, raw, v)
	case v.Kind() == reflect.Map:
		return d.entries(path, raw, v)
	case v.Kind() == reflect.Slice:
		return d.elements(path, raw, v)
	default:
		return d.leaf(path, raw, v)
	}
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func (d *fieldDecoder) leaf(path string, raw json.RawMessage, v reflect.Value) bool {
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		v.SetZero()
		d.fail(path, "not "+expected(v))
		return false
	}
	if v.Kind() == reflect.String && v.Len() > maxTextBytes {
		problem := tooLong(v.Len())
		v.SetZero()
		d.fail(path, problem)
		return false
	}
	return true
}

func tooLong(n int) string { return fmt.Sprintf("%d bytes, more than %d", n, maxTextBytes) }

func tooMany(what string) string { return fmt.Sprintf("more than %d %s", maxElements, what) }

func (d *fieldDecoder) object(path string, raw json.RawMessage, v reflect.Value) bool {
	fields := fieldsOf(v.Type())
	members, ok := membersOf(raw, func(name string) bool {
		return slices.ContainsFunc(fields, func(f structField) bool { return f.name == name })
	})
	if !ok {
		d.fail(path, "not an object")
		return false
	}
	for _, f := range fields {
		value, found := members[f.name]
		switch {
		case f.optional && (!found || isNull(value)):
		case !found:
			d.fail(join(path, f.name), problemMissing)
		default:
			d.decode(join(path, f.name), value, v.Field(f.index))
		}
	}
	return true
}

// membersOf returns those members of an object that are wanted, at most one more than
// maxElements; false if the value is no object.
func membersOf(raw json.RawMessage, wanted func(name string) bool) (members map[string]json.RawMessage, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	members = map[string]json.RawMessage{}
	for dec.More() && len(members) <= maxElements {
		key, _ := dec.Token()
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, false
		}
		if name, _ := key.(string); wanted(name) {
			members[name] = value
		}
	}
	return members, true
}

func (d *fieldDecoder) entries(path string, raw json.RawMessage, v reflect.Value) bool {
	members, ok := membersOf(raw, func(string) bool { return true })
	switch {
	case !ok:
		d.fail(path, "not an object")
		return false
	case len(members) > maxElements:
		d.fail(path, tooMany("members"))
		return false
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if len(key) > maxTextBytes {
			d.fail(join(path, key), "name of "+tooLong(len(key)))
			continue
		}
		element := reflect.New(v.Type().Elem()).Elem()
		if d.decode(join(path, key), members[key], element) {
			v.SetMapIndex(reflect.ValueOf(key), element)
		}
	}
	return true
}

func (d *fieldDecoder) elements(path string, raw json.RawMessage, v reflect.Value) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		d.fail(path, "not an array")
		return false
	}
	errs := len(d.errs)
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for i := 0; dec.More(); i++ {
		if i == maxElements {
			d.errs = d.errs[:errs]
			v.SetZero()
			d.fail(path, tooMany("elements"))
			return false
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return false
		}
		element := reflect.New(v.Type().Elem()).Elem()
		if d.decode(fmt.Sprintf("%s[%d]", path, i), value, element) {
			v.Set(reflect.Append(v, element))
		}
	}
	return true
}

// structField is a field of a struct, with its name in the API.
type structField struct {
	name     string
	index    int
	optional bool
}

func fieldsOf(t reflect.Type) []structField {
	fields := make([]structField, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		fields = append(fields, structField{name, i, f.Tag.Get("api") == "optional"})
	}
	return fields
}

func join(path, name string) string {
	const maxName = 64 // of a key that the provider chose
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "")
	if path == "" {
		return name
	}
	return path + "." + name
}

// expected says in words which values a type accepts.
func expected(v reflect.Value) string {
	if e, ok := v.Addr().Interface().(Expecter); ok {
		return e.Expected()
	}
	switch v.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	default:
		return "an integer"
	}
}
