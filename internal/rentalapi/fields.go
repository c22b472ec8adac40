package rentalapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
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

// Expecter is implemented by field types that describe in words which values they
// accept, for example "a number of 0 or more".
type Expecter interface{ Expected() string }

// decodeFields decodes a JSON value into the struct that into points to. A field
// that is not understood keeps its zero value and is returned as an error; all
// others are set. A field with the tag api:"required" must not be missing.
func decodeFields(raw json.RawMessage, into any) []FieldError {
	v := reflect.ValueOf(into).Elem()
	if isPlain(raw, v.Type()) && json.Unmarshal(raw, into) == nil {
		return nil // the usual case: everything is understood
	}
	v.SetZero()
	var d fieldDecoder
	d.decode("", raw, v)
	return d.errs
}

// isPlain reports whether everything that has to hold of a value is what
// encoding/json checks: no text can be too long (each byte that is not UTF-8 becomes
// three), and no field is required.
func isPlain(raw json.RawMessage, t reflect.Type) bool {
	return len(raw) <= maxTextBytes && utf8.Valid(raw) && !hasRequired(t)
}

func hasRequired(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return hasRequired(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("api") == "required" || hasRequired(f.Type) {
				return true
			}
		}
	}
	return false
}

// fieldDecoder decodes field by field, which encoding/json does only up to the
// first error of a type with its own decoding.
type fieldDecoder struct{ errs []FieldError }

func (d *fieldDecoder) fail(path, problem string) {
	d.errs = append(d.errs, FieldError{path, problem})
}

// decode returns false if nothing of the value was understood.
func (d *fieldDecoder) decode(path string, raw json.RawMessage, v reflect.Value) bool {
	if string(raw) == "null" {
		return true
	}
	_, custom := v.Addr().Interface().(json.Unmarshaler)
	switch {
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

func (d *fieldDecoder) leaf(path string, raw json.RawMessage, v reflect.Value) bool {
	if json.Unmarshal(raw, v.Addr().Interface()) != nil {
		v.SetZero()
		d.fail(path, "not "+expected(v))
		return false
	}
	if v.Kind() == reflect.String && v.Len() > maxTextBytes {
		d.fail(path, tooLong(v.Len()))
		v.SetZero()
		return false
	}
	return true
}

func tooLong(n int) string { return fmt.Sprintf("%d bytes, more than %d", n, maxTextBytes) }

func (d *fieldDecoder) object(path string, raw json.RawMessage, v reflect.Value) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		d.fail(path, "not an object")
		return false
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name := fieldName(f)
		value, found := member(members, name)
		switch {
		case found:
			d.decode(join(path, name), value, v.Field(i))
		case f.Tag.Get("api") == "required":
			d.fail(join(path, name), "missing")
		}
	}
	return true
}

// member finds a member as encoding/json does: in any case of letters if not exactly.
func member(members map[string]json.RawMessage, name string) (value json.RawMessage, found bool) {
	if value, found = members[name]; found {
		return value, true
	}
	last := ""
	for key := range members {
		if key >= last && strings.EqualFold(key, name) {
			last, found = key, true
		}
	}
	return members[last], found
}

func (d *fieldDecoder) entries(path string, raw json.RawMessage, v reflect.Value) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		d.fail(path, "not an object")
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
	var values []json.RawMessage
	if json.Unmarshal(raw, &values) != nil {
		d.fail(path, "not an array")
		return false
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, len(values)))
	for i, value := range values {
		element := reflect.New(v.Type().Elem()).Elem()
		if d.decode(fmt.Sprintf("%s[%d]", path, i), value, element) {
			v.Set(reflect.Append(v, element))
		}
	}
	return true
}

// fieldName is the name of a struct field in the API.
func fieldName(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	return strings.ToLower(f.Name)
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
