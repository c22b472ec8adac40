package rentalapi

import (
	"bytes"
	"encoding/json"
	"errors"
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

// FieldError is a field of an answer that was not understood. It never contains the
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

// decode returns false where nothing of the value was understood.
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

// maxCauses bounds how many causes an Invalid keeps.
const maxCauses = 10

// Invalid counts the items of an answer that were not understood in full, with the
// first item of each distinct cause.
type Invalid struct {
	Items  int     // each counts once, however many of its fields are wrong
	Causes []Cause // at most ten
}

// Cause is why an item was not understood, and the first item with that cause.
type Cause struct {
	Item string // its id, or its position such as data[3]
	FieldError
}

// Error names the item, the field and the problem.
func (c Cause) Error() string {
	if c.Item == "" {
		return c.FieldError.Error()
	}
	return c.Item + ": " + c.FieldError.Error()
}

// Add counts one item where it has any errors.
func (v *Invalid) Add(item string, errs ...FieldError) {
	if len(errs) == 0 {
		return
	}
	v.Items++
	for _, e := range errs {
		v.addCause(Cause{item, e})
	}
}

func (v *Invalid) addCause(c Cause) {
	for _, known := range v.Causes {
		if known.FieldError == c.FieldError {
			return
		}
	}
	if len(v.Causes) < maxCauses {
		v.Causes = append(v.Causes, c)
	}
}

// Merge adds the items and causes of another part of the same answer.
func (v *Invalid) Merge(other Invalid) {
	v.Items += other.Items
	for _, c := range other.Causes {
		v.addCause(c)
	}
}

// Errors of an item as a whole.
var (
	errNotObject = FieldError{Problem: "not an object"}
	errNoID      = FieldError{"id", "missing"}
	errSeenID    = FieldError{"id", "already seen"}
)

// itemReader decodes the items of one list and keeps those with a usable id.
type itemReader[T any] struct {
	id      func(*T) string
	check   func(*T, []FieldError) []FieldError
	seen    map[string]bool
	read    int // items, understood or not
	unnamed int // of these, without a usable id
	items   []*T
	invalid Invalid
}

func (r *itemReader[T]) add(raw json.RawMessage) {
	position := r.read
	r.read++
	if len(raw) == 0 || raw[0] != '{' {
		r.unnamed++
		r.invalid.Add(at(position), errNotObject)
		return
	}
	item := new(T)
	errs := decodeFields(raw, item)
	id := r.id(item)
	switch {
	case id == "":
		r.unnamed++
		r.invalid.Add(at(position), idError(errs)) // the others do not matter: the item is dropped
		return
	case r.seen[id]:
		r.invalid.Add(shorten(id), errSeenID)
		return
	}
	r.seen[id] = true
	r.items = append(r.items, item)
	if r.check != nil {
		errs = append(errs, r.check(item, errs)...)
	}
	r.invalid.Add(shorten(id), errs...)
}

// at names an item by its position in the list, counted from 0.
func at(position int) string { return fmt.Sprintf("data[%d]", position) }

// idError returns why an item has no usable id.
func idError(errs []FieldError) FieldError {
	for _, e := range errs {
		if e.Field == "id" {
			return e
		}
	}
	return errNoID
}

// shorten keeps an id readable in a message.
func shorten(id string) string {
	const maxID = 64
	if len(id) <= maxID {
		return id
	}
	return strings.ToValidUTF8(id[:maxID], "") + "..."
}

// decodeObject decodes a single object, in which every field may be wrong by itself.
func decodeObject[T any](raw json.RawMessage) (*T, []FieldError, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil, errors.New("data: not an object")
	}
	v := new(T)
	return v, decodeFields(raw, v), nil
}
