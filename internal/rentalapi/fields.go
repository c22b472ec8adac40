package rentalapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

const (
	// maxTextBytes bounds a text, which may become a label value: it is the usual limit of
	// long-term stores, which refuse a whole write over a longer one.
	maxTextBytes = 2048
	maxCauses    = 10 // causes that an Invalid keeps

	problemMissing = "missing"
	problemNull    = "null"
	problemLong    = "more than 2048 bytes"
)

// Value is a field type with its own decoding.
type Value interface {
	// Decode sets the value from a string without blanks around, a json.Number, a bool, or the
	// json.RawMessage of an array or an object. It returns what is wrong, for example "not a latitude".
	Decode(value any) (problem string)
}

// Count is a whole number of 0 or more that a float64 holds exactly: how many, how large, how long.
type Count float64

// Decode implements Value.
func (n *Count) Decode(value any) (problem string) {
	v, ok := Number(value)
	*n = Count(v)
	return Unless(ok && v >= 0 && v <= 1<<53 && v == math.Trunc(v), "not a whole number of 0 or more")
}

// Number returns a decoded value as a number, if it is one.
func Number(value any) (float64, bool) {
	n, _ := value.(json.Number)
	v, err := n.Float64()
	return v + 0, err == nil // never the negative zero
}

// fieldDecoder goes on after a wrong field. Unlike it, encoding/json stops at the first error
// of a type with its own decoding, and does not tell what is missing.
type fieldDecoder struct {
	errs     []FieldError
	elements int // elements of all arrays and maps so far
}

// count counts elements of arrays and maps, of which one item may have too many.
func (d *fieldDecoder) count(n int) error {
	if d.elements += n; d.elements > maxElements {
		return fmt.Errorf("more than %d elements of arrays and objects: %w", maxElements, ErrTooLarge)
	}
	return nil
}

// decodeFields decodes JSON into the struct that into points to. An invalid field keeps its
// zero value and is returned as an error; all others are set. A field that is missing or null is an
// error too, unless it has the tag api:"optional", or if it is missing the tag api:"new". What no field
// uses is not decoded.
//
// A field is a [Value], a string, a bool, or a struct, a slice, a map with names as keys or a
// pointer of these; a name is a string or a Value. It panics at a field of any other type.
func (d *fieldDecoder) decodeFields(raw json.RawMessage, into any) []FieldError {
	d.errs = nil
	d.decode("", raw, reflect.ValueOf(into).Elem())
	return d.errs
}

// decode returns false if nothing of the value was understood.
func (d *fieldDecoder) decode(path string, raw json.RawMessage, v reflect.Value) bool {
	problem := ""
	switch {
	case isNull(raw):
		problem = problemNull
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		if !d.decode(path, raw, target.Elem()) {
			return false
		}
		v.Set(target)
	default:
		problem = d.decodeKind(path, raw, v)
	}
	if v.Kind() == reflect.String {
		problem = cmp.Or(problem, Unless(v.Len() <= maxTextBytes, problemLong))
	}
	if problem != "" {
		v.SetZero()
		d.errs = append(d.errs, FieldError{Field: path, Problem: problem})
	}
	return problem == ""
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] == 'n' }

// scalar returns the value of valid JSON, as for Value; an array or an object stays as it is.
func scalar(raw json.RawMessage) any {
	switch raw[0] {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text) // it is valid
		return cleanText(text)
	case 't', 'f':
		return raw[0] == 't'
	case '{', '[':
		return raw
	}
	return json.Number(raw)
}

func (d *fieldDecoder) decodeKind(path string, raw json.RawMessage, v reflect.Value) (problem string) {
	if custom, isCustom := v.Addr().Interface().(Value); isCustom {
		return custom.Decode(scalar(raw))
	}
	switch v.Kind() {
	case reflect.String:
		text, ok := scalar(raw).(string)
		v.SetString(text)
		return Unless(ok, "not a string")
	case reflect.Bool:
		truth, ok := scalar(raw).(bool)
		v.SetBool(truth)
		return Unless(ok, "not true or false")
	case reflect.Slice:
		d.items(path, raw, v)
		return Unless(raw[0] == '[', "not an array")
	case reflect.Map, reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return "not an object"
		}
		if v.Kind() == reflect.Struct {
			d.fields(path, members, v)
			return ""
		}
		d.entries(path, members, v)
		return Unless(len(members) > 0, "empty")
	}
	panic(fmt.Sprintf("rentalapi: field %q is of type %s", path, v.Type()))
}

// Unless returns a problem, or nothing if all is well.
func Unless(ok bool, problem string) string {
	if ok {
		return ""
	}
	return problem
}

// cleanText returns a text without blanks around, and with one space for blanks of any kind between
// words.
func cleanText(text string) string { return strings.Join(strings.Fields(text), " ") }

func (d *fieldDecoder) fields(path string, members map[string]json.RawMessage, v reflect.Value) {
	for f, target := range v.Fields() {
		if !f.IsExported() { // not in the API
			continue
		}
		name, tag := cmp.Or(f.Tag.Get("json"), strings.ToLower(f.Name)), f.Tag.Get("api")
		value, found := members[name]
		switch {
		case isNull(value) && tag == "optional", !found && tag == "new":
		case !found:
			d.errs = append(d.errs, FieldError{Field: join(path, name), Problem: problemMissing})
		default:
			d.decode(join(path, name), value, target)
		}
	}
}

// entries decodes a map. Its keys become label values like other texts.
func (d *fieldDecoder) entries(path string, members map[string]json.RawMessage, v reflect.Value) {
	if d.count(len(members)) != nil {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, key := range slices.Sorted(maps.Keys(members)) { // so that the same causes are kept each time
		name, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		text := cleanText(key)
		quoted, _ := json.Marshal(text) // a text can be encoded
		problem := cmp.Or(d.decodeKind(path, quoted, name), Unless(len(text) <= maxTextBytes, problemLong), Unless(text != "", "empty"))
		switch member := join(path, text); {
		case problem != "":
			d.errs = append(d.errs, FieldError{Field: path, Problem: "a name that is " + problem})
		case v.MapIndex(name).IsValid():
			d.errs = append(d.errs, FieldError{Field: member, Problem: "already seen"})
		case d.decode(member, members[key], element):
			v.SetMapIndex(name, element)
		}
	}
}

// items decodes an array, until there are too many elements.
func (d *fieldDecoder) items(path string, raw json.RawMessage, v reflect.Value) {
	var value json.RawMessage
	n, dec := 0, json.NewDecoder(bytes.NewReader(raw))
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	_ = each(dec, '[', func() error {
		_ = dec.Decode(&value) // it is valid
		element := reflect.New(v.Type().Elem()).Elem()
		if d.decode(fmt.Sprintf("%s[%d]", path, n), value, element) {
			v.Set(reflect.Append(v, element))
		}
		n++
		return d.count(1)
	})
}

// each calls f with a decoder at each element of an array, or member of an object, until f fails.
func each(dec *json.Decoder, start json.Delim, f func() error) error {
	switch first, err := dec.Token(); {
	case err != nil:
		return err
	case first == nil:
		return fmt.Errorf("null: %w", ErrIncomplete)
	case first != start:
		return errors.New(map[json.Delim]string{'[': "not an array", '{': "response: not an object"}[start])
	}
	for dec.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// FieldError is an invalid field of a response. It never contains the
// value that was found.
type FieldError struct {
	Item    string // its id, or its position such as data[3]; empty for a response without items
	Field   string // path in the API, for example cpu.cores; empty for the whole value
	Problem string // for example "not an integer"
}

// Error says what is wrong with which field of which item.
func (e FieldError) Error() string {
	parts := []string{e.Item, e.Field, e.Problem}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// IsLike returns whether the same is wrong with a field of another item.
func (e FieldError) IsLike(other FieldError) bool {
	return e.Field == other.Field && e.Problem == other.Problem
}

// Absent returns whether the field has no value at all.
func (e FieldError) Absent() bool { return e.Problem == problemMissing || e.Problem == problemNull }

// Invalid counts the invalid items of a response, with the
// first item of each distinct cause.
type Invalid struct {
	Items  int          // each counts once, however many of its fields are wrong
	Causes []FieldError // the first maxCauses
}

// Add counts one item if it has any errors.
func (v *Invalid) Add(item string, errs ...FieldError) {
	v.Items += min(len(errs), 1)
	for _, e := range errs {
		e.Item = item
		v.Merge(Invalid{Causes: []FieldError{e}})
	}
}

// Merge adds the items and causes of another part of the same response.
func (v *Invalid) Merge(other Invalid) {
	v.Items += other.Items
	for _, c := range other.Causes {
		if len(v.Causes) < maxCauses && !slices.ContainsFunc(v.Causes, c.IsLike) {
			v.Causes = append(v.Causes, c)
		}
	}
}
