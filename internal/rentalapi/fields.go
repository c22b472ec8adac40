package rentalapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxTextBytes bounds a text field. Longer ones cannot become label values: it is
// the usual limit of long-term stores, which refuse a whole write over a longer one.
const maxTextBytes = 2048

// maxElements bounds the elements of an array and the members of a map in one item.
const maxElements = 1_000

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

// Expected is the error of a field type with its own decoding. It says in words which values
// the type accepts, for example "a number of 0 or more".
type Expected string

// Error implements error.
func (e Expected) Error() string { return "not " + string(e) }

// decodeFields decodes a valid JSON value into the struct that into points to. A field that
// is not understood keeps its zero value and is returned as an error; all others are set. A
// field that is missing or null is an error too, unless it has the tag api:"optional", or
// if it is missing the tag api:"new".
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

// decode returns false if nothing of the value was understood.
func (d *fieldDecoder) decode(path string, raw json.RawMessage, v reflect.Value) bool {
	kind := v.Kind()
	if _, custom := v.Addr().Interface().(json.Unmarshaler); custom {
		kind = reflect.Invalid
	}
	problem := ""
	switch {
	case isNull(raw):
		problem = problemNull
	case kind == reflect.Pointer:
		value := reflect.New(v.Type().Elem())
		if !d.decode(path, raw, value.Elem()) {
			return false
		}
		v.Set(value)
	case (kind == reflect.Struct || kind == reflect.Map) && raw[0] != '{':
		problem = "not an object"
	case kind == reflect.Slice && raw[0] != '[':
		problem = "not an array"
	case kind == reflect.Struct:
		d.fields(path, raw, v)
	case kind == reflect.Map:
		problem = d.entries(path, raw, v)
	case kind == reflect.Slice:
		problem = d.elements(path, raw, v)
	default:
		problem = decodeLeaf(raw, v)
	}
	if problem != "" {
		v.SetZero()
		d.errs = append(d.errs, FieldError{path, problem})
	}
	return problem == ""
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func decodeLeaf(raw json.RawMessage, v reflect.Value) (problem string) {
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return expected(v, err).Error()
	}
	if v.Kind() == reflect.String && v.Len() > maxTextBytes {
		return tooLong(v.Len())
	}
	return ""
}

func tooLong(n int) string { return fmt.Sprintf("%d bytes, more than %d", n, maxTextBytes) }

func (d *fieldDecoder) fields(path string, raw json.RawMessage, v reflect.Value) {
	names := fieldNames(v.Type())
	values := make([]json.RawMessage, len(names))
	for name, value := range children(raw) {
		if i := slices.Index(names, name); i >= 0 {
			values[i] = value
		}
	}
	for i, value := range values {
		tag := v.Type().Field(i).Tag.Get("api")
		switch {
		case names[i] == "", value == nil && tag != "", tag == "optional" && isNull(value):
		case value == nil:
			d.errs = append(d.errs, FieldError{join(path, names[i]), problemMissing})
		default:
			d.decode(join(path, names[i]), value, v.Field(i))
		}
	}
}

// fieldNames returns the names of a struct's fields in the API, empty for those that it
// does not have.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		if f := t.Field(i); f.IsExported() {
			names[i] = cmp.Or(f.Tag.Get("json"), strings.ToLower(f.Name))
		}
	}
	return names
}

func (d *fieldDecoder) entries(path string, raw json.RawMessage, v reflect.Value) (problem string) {
	members := map[string]json.RawMessage{}
	for name, value := range children(raw) {
		members[name] = value
		if len(members) > maxElements {
			return fmt.Sprintf("more than %d members", maxElements)
		}
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		element := reflect.New(v.Type().Elem()).Elem()
		if len(name) > maxTextBytes {
			d.errs = append(d.errs, FieldError{join(path, name), "name of " + tooLong(len(name))})
		} else if d.decode(join(path, name), members[name], element) {
			v.SetMapIndex(reflect.ValueOf(name), element)
		}
	}
	return ""
}

func (d *fieldDecoder) elements(path string, raw json.RawMessage, v reflect.Value) (problem string) {
	var values []json.RawMessage
	for _, value := range children(raw) {
		if len(values) == maxElements {
			return fmt.Sprintf("more than %d elements", maxElements)
		}
		values = append(values, value)
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(values)))
	for i, value := range values {
		element := reflect.New(v.Type().Elem()).Elem()
		if d.decode(fmt.Sprintf("%s[%d]", path, i), value, element) {
			v.Set(reflect.Append(v, element))
		}
	}
	return ""
}

// children yields the elements of an array or, with their names, the members of an object.
func children(raw json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		_ = readEach(dec, json.Delim(raw[0]), "", func(name string) error {
			var value json.RawMessage
			if dec.Decode(&value) != nil || !yield(name, value) {
				return io.EOF
			}
			return nil
		})
	}
}

func join(path, name string) string {
	const maxName = 64 // of a key that the provider chose
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "")
	if path == "" {
		return name
	}
	return path + "." + name
}

// expected returns the error of a type's own decoding, or else what its kind accepts.
func expected(v reflect.Value, err error) Expected {
	var own Expected
	if errors.As(err, &own) {
		return own
	}
	names := map[reflect.Kind]Expected{reflect.String: "a string", reflect.Bool: "true or false", reflect.Float64: "a number"}
	return cmp.Or(names[v.Kind()], "an integer")
}
