package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
)

// The types below are the values that the provider's document gives, with the
// range in which each makes sense. In a wire struct they stand behind a pointer
// where null or a missing field must stay unknown. Anything out of range or of
// another JSON type makes the item that holds it invalid.
type (
	// count is a number from 0 on: how many, how large, how long.
	count float64
	// price is what something costs, 0 to 10 million.
	price float64
	// amount is money that may be owed, up to 100 million either way.
	amount float64
	// latitude and longitude are degrees.
	latitude  float64
	longitude float64
	// instant is a point in time from 1970 on, as Unix seconds. A date without a
	// time is its midnight in UTC.
	instant float64
)

func (n *count) UnmarshalJSON(b []byte) error  { return inRange(b, 0, 1e15, n) }
func (n *price) UnmarshalJSON(b []byte) error  { return inRange(b, 0, 1e7, n) }
func (n *amount) UnmarshalJSON(b []byte) error { return inRange(b, -1e8, 1e8, n) }

func (n *latitude) UnmarshalJSON(b []byte) error  { return inRange(b, -90, 90, n) }
func (n *longitude) UnmarshalJSON(b []byte) error { return inRange(b, -180, 180, n) }

// inRange reads a number between two bounds.
func inRange[T ~float64](b []byte, least, most float64, into *T) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil || v < least || v > most {
		return wrong(into)
	}
	*into = T(v)
	return nil
}

func (t *instant) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return wrong(t)
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04:05"} {
		at, err := time.Parse(layout, s)
		if err != nil || at.Unix() < 0 {
			continue
		}
		*t = instant(float64(at.UnixMilli()) / 1000)
		return nil
	}
	return wrong(t)
}

// wrong is the error that encoding/json completes with the field's path.
func wrong(into any) error {
	return &json.UnmarshalTypeError{Type: reflect.TypeOf(into).Elem()}
}

// decode reads one JSON value. Its errors name the field and what belongs there,
// and nothing of what was found.
func decode(raw json.RawMessage, into any) error {
	err := json.Unmarshal(raw, into)
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	field := mismatch.Field
	if field == "" {
		field = "value"
	}
	return fmt.Errorf("%s: not %s", field, nameOf(mismatch.Type))
}

// nameOf says in words what values of a type are.
func nameOf(t reflect.Type) string {
	switch reflect.Zero(t).Interface().(type) {
	case count:
		return "a number from 0 on"
	case price:
		return "a price from 0 to 10 million"
	case amount:
		return "an amount of at most 100 million"
	case latitude:
		return "a latitude"
	case longitude:
		return "a longitude"
	case instant:
		return "a time from 1970 on"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "an integer"
	}
}

// micros is money in millionths, so that sums of it are exact.
type micros float64

func microsOf[T ~float64](v T) micros { return micros(math.Round(float64(v) * 1e6)) }

func (m micros) value() float64 { return float64(m) / 1e6 }

// flag is a boolean as a label value: true, false or, for null, empty.
func flag(b *bool) string {
	switch {
	case b == nil:
		return ""
	case *b:
		return "true"
	default:
		return "false"
	}
}

// scaled multiplies a known value and rounds away what the multiplication added.
func scaled(v *count, by float64) *count {
	if v == nil {
		return nil
	}
	r := count(math.Round(float64(*v)*by*1e6) / 1e6)
	return &r
}
