package collector

import (
	"cmp"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// The types below are values of the provider's document, each with its range. A value out of range or
// of another JSON type makes its field invalid. A field that may be unknown is a pointer.
type (
	count      = rentalapi.Count // a whole number of 0 or more
	quantity   float64           // 0 or more, rounded to a millionth: arithmetic of the provider may leave a remainder
	amount     float64           // money that may be owed, rounded likewise
	latitude   float64           // degrees
	longitude  float64           // degrees
	timestamp  float64           // Unix seconds, from 1970 on; a date without a time is its midnight in UTC
	state      string            // never empty
	locationID string            // lower case, so that what belongs to one location has one label
	link       string            // address of a page for people
)

// maxNumber bounds numbers, so that no sum or product of them is infinite.
const maxNumber = 1e12

// Decode implements rentalapi.Value; likewise below.
func (n *quantity) Decode(value any) string {
	v, ok := rentalapi.Number(value)
	*n = quantity(microsOf(v).value())
	return rentalapi.Unless(ok && v >= 0 && v <= maxNumber, "not a plausible number of 0 or more")
}

func (n *amount) Decode(value any) string {
	v, ok := rentalapi.Number(value)
	*n = amount(microsOf(v).value() + 0) // never the negative zero
	return rentalapi.Unless(ok && math.Abs(v) <= maxNumber, "not a plausible amount")
}

func (n *latitude) Decode(value any) string { return decodeDegrees(n, value, 90, "not a latitude") }

func (n *longitude) Decode(value any) string { return decodeDegrees(n, value, 180, "not a longitude") }

func decodeDegrees[T ~float64](n *T, value any, most float64, problem string) string {
	v, ok := rentalapi.Number(value)
	*n = T(v)
	return rentalapi.Unless(ok && math.Abs(v) <= most, problem)
}

func (s *state) Decode(value any) string {
	text, ok := value.(string)
	*s = state(text)
	return cmp.Or(rentalapi.Unless(ok, "not a string"), rentalapi.Unless(text != "", "empty"))
}

func (l *locationID) Decode(value any) string {
	var text state
	problem := text.Decode(value)
	*l = locationID(strings.ToLower(string(text)))
	return problem
}

// Decode reads the common ISO 8601 forms: a date alone, or a date and a time with or without
// seconds, fractions and offset; no offset is UTC.
func (t *timestamp) Decode(value any) string {
	text, _ := value.(string) // empty, which is no time, if it is no string
	text = strings.ToUpper(strings.Replace(text, " ", "T", 1))
	for _, clock := range []string{"", "T15:04:05", "T15:04"} { // fractions are read without being in the layout
		for _, offset := range []string{"Z07:00", "Z0700", "Z07", ""} {
			if at, err := time.Parse(time.DateOnly+clock+offset, text); err == nil && at.Unix() >= 0 {
				*t = timestamp(float64(at.UnixMilli()) / 1000)
				return ""
			}
		}
	}
	return "not an ISO 8601 time from 1970 on"
}

// time returns the point in time, to the millisecond.
func (t timestamp) time() time.Time { return time.UnixMilli(int64(math.Round(float64(t) * 1000))) }

// Decode reads an absolute https URL without user information, or an http URL of a loopback address.
// It accepts only the characters of RFC 3986: others could hide the address, or end the link early.
func (l *link) Decode(value any) string {
	text, _ := value.(string) // empty, which is no address, if it is no string
	*l = link(text)
	u, err := url.Parse(text)
	if err != nil {
		u = &url.URL{}
	}
	address, err := netip.ParseAddr(u.Hostname())
	loopback := err == nil && address.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
	foreign := func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c) }
	return rentalapi.Unless((u.Scheme == "https" || u.Scheme == "http" && loopback) &&
		u.Hostname() != "" && u.User == nil && !strings.ContainsFunc(text, foreign), "not an absolute https URL without user information")
}

// micros is money in millionths, so that sums of it are exact.
type micros float64

func microsOf[T ~float64](v T) micros { return micros(math.Round(float64(v) * 1e6)) }

func (m micros) value() float64 { return float64(m) / 1e6 }

// boolLabel returns a boolean as a label value: true, false or, for null, empty.
func boolLabel(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// numberText returns a number as text; empty if it is not known.
func numberText[T ~float64](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*n), 'f', -1, 64)
}

// scaled multiplies a known value and rounds away what the multiplication added.
func scaled[T ~float64](v *T, by float64) *T {
	if v == nil {
		return nil
	}
	r := T(math.Round(float64(*v)*by*1e6) / 1e6)
	return &r
}
