package rentalapi

import (
	"cmp"
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

const (
	problemMissing = "missing"
	problemNull    = "null"
)

// Value is a field type with its own decoding.
type Value interface {
	// Decode sets the value from what encoding/json gives for anything but null, with
	// json.Number for numbers. It returns what is wrong, for example "not a latitude".
	Decode(value any) (problem string)
}

// Count is a number of 0 or more: how many, how large, how long.
type Count float64

// Decode implements Value.
func (n *Count) Decode(value any) (problem string) {
	v, ok := Number(value)
	if !ok || v < 0 {
		return "not a number of 0 or more"
	}
	*n = Count(v)
	return ""
}

// Number returns a decoded value as a number, if it is one.
func Number(value any) (float64, bool) {
	n, _ := value.(json.Number)
	v, err := n.Float64()
	return v + 0, err == nil // never the negative zero
}

// decodeFields decodes a value of encoding/json into the struct that into points to. A field
// that is not understood keeps its zero value and is returned as an error; all others are
// set. A field that is missing or null is an error too, unless it has the tag api:"optional",
// or if it is missing the tag api:"new". It also returns how many elements all arrays and maps
// have.
func decodeFields(value, into any) (errs []FieldError, elements int) {
	var d fieldDecoder
	d.decode("", value, reflect.ValueOf(into).Elem())
	return d.errs, d.elements
}

// fieldDecoder goes on after a wrong field. Unlike it, encoding/json stops at the first error
// of a type with its own decoding, and does not tell what is missing.
type fieldDecoder struct {
	errs     []FieldError
	elements int
}

// decode returns false if nothing of the value was understood.
func (d *fieldDecoder) decode(path string, value any, v reflect.Value) bool {
	custom, _ := v.Addr().Interface().(Value)
	members, isObject := value.(map[string]any)
	elements, isArray := value.([]any)
	kind, problem := v.Kind(), ""
	switch {
	case value == nil:
		problem = problemNull
	case kind == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if !d.decode(path, value, target.Elem()) {
			return false
		}
		v.Set(target)
	case custom != nil:
		problem = custom.Decode(value)
	case kind == reflect.Slice && isArray:
		d.items(path, elements, v)
	case kind == reflect.Struct && isObject:
		d.fields(path, members, v)
	case kind == reflect.Map && isObject && len(members) == 0:
		problem = "empty"
	case kind == reflect.Map && isObject:
		d.entries(path, members, v)
	case reflect.TypeOf(value) == v.Type(): // string or bool
		v.Set(reflect.ValueOf(value))
	default:
		problem = "not " + map[reflect.Kind]string{
			reflect.Slice: "an array", reflect.Struct: "an object", reflect.Map: "an object", reflect.Bool: "true or false", reflect.String: "a string",
		}[kind]
	}
	if kind == reflect.String {
		problem = cmp.Or(problem, tooLong(v.String()))
	}
	if problem != "" {
		v.SetZero()
		d.errs = append(d.errs, FieldError{path, problem})
	}
	return problem == ""
}

func (d *fieldDecoder) fields(path string, members map[string]any, v reflect.Value) {
	for f, target := range v.Fields() {
		if !f.IsExported() { // not in the API
			continue
		}
		name, tag := cmp.Or(f.Tag.Get("json"), strings.ToLower(f.Name)), f.Tag.Get("api")
		value, found := members[name]
		switch {
		case value == nil && tag == "optional", !found && tag == "new":
		case !found:
			d.errs = append(d.errs, FieldError{join(path, name), problemMissing})
		default:
			d.decode(join(path, name), value, target)
		}
	}
}

// entries decodes a map. Its keys become label values like other texts.
func (d *fieldDecoder) entries(path string, members map[string]any, v reflect.Value) {
	d.elements += len(members)
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(members)) { // so that the same causes are kept each time
		element := reflect.New(v.Type().Elem()).Elem()
		if name == "" || tooLong(name) != "" {
			d.errs = append(d.errs, FieldError{path, "a name that is " + cmp.Or(tooLong(name), "empty")})
		} else if d.decode(join(path, name), members[name], element) {
			v.SetMapIndex(reflect.ValueOf(name), element)
		}
	}
}

func (d *fieldDecoder) items(path string, values []any, v reflect.Value) {
	d.elements += len(values)
	v.Set(reflect.MakeSlice(v.Type(), 0, len(values)))
	for i, value := range values {
		element := reflect.New(v.Type().Elem()).Elem()
		if d.decode(fmt.Sprintf("%s[%d]", path, i), value, element) {
			v.Set(reflect.Append(v, element))
		}
	}
}

// tooLong returns what is wrong with a text that is too long, and else nothing.
func tooLong(text string) (problem string) {
	if len(text) > maxTextBytes {
		problem = fmt.Sprintf("more than %d bytes", maxTextBytes)
	}
	return problem
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
