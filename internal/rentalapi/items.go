package rentalapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Errors of an item as a whole, and of meta.count.
var (
	errNotObject  = FieldError{Problem: "not an object"}
	errNoID       = FieldError{"id", problemMissing}
	errSmallCount = FieldError{"count", "less than the items in data"}
	errSeenID     = FieldError{"id", "already seen"}
)

// itemReader decodes the items of one list and keeps those with a usable id.
type itemReader[T any] struct {
	id        func(*T) string
	check     func(*T, []FieldError) []FieldError
	seen      map[string]bool
	read      int // items, understood or not
	withoutID int // of these, without a usable id
	items     []*T
	invalid   Invalid
}

func (r *itemReader[T]) add(raw json.RawMessage) {
	position := r.read
	r.read++
	if len(raw) == 0 || raw[0] != '{' {
		r.withoutID++
		r.invalid.Add(at(position), errNotObject)
		return
	}
	item := new(T)
	errs := decodeFields(raw, item)
	id := r.id(item)
	switch {
	case id == "":
		r.withoutID++
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

// decodeMeta decodes a meta object, of which all is missing if it is empty or null.
func decodeMeta(raw json.RawMessage, into any) []FieldError {
	if len(raw) > 0 && !isNull(raw) {
		return decodeFields(raw, into)
	}
	if len(decodeFields(json.RawMessage("{}"), into)) == 0 {
		return nil
	}
	return []FieldError{{Problem: problemMissing}}
}
