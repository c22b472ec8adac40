package collector

import (
	"encoding/json"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"server_rental_exporter/internal/rentalapi"
)

// The types below are the values that the provider documents, with the range in
// which each makes sense. In a wire struct they stand behind a pointer if null or
// a missing field must stay unknown. A value out of range or of another JSON type
// makes its field invalid.
type (
	// count is a number of 0 or more: how many, how large, how long.
	count float64
	// price is what something costs, 0 to 10 million, rounded to a millionth: what the
	// provider calculates with may leave a rest.
	price float64
	// amount is money that may be owed, up to 100 million either way, rounded likewise.
	amount float64
	// latitude and longitude are degrees.
	latitude  float64
	longitude float64
	// timestamp is a point in time from 1970 on, as Unix seconds. A date without a
	// time is its midnight in UTC.
	timestamp float64
	// link is the address of a page that people may be sent to.
	link string
)

// UnmarshalJSON implements json.Unmarshaler; likewise below.
func (n *count) UnmarshalJSON(b []byte) error {
	return inRange(b, n, 0, 1e15, "a number of 0 or more")
}

func (n *price) UnmarshalJSON(b []byte) error {
	err := inRange(b, n, 0, 1e7, "a price from 0 to 10 million")
	*n = price(microsOf(*n).value())
	return err
}

func (n *amount) UnmarshalJSON(b []byte) error {
	err := inRange(b, n, -1e8, 1e8, "an amount of at most 100 million")
	*n = amount(microsOf(*n).value()) + 0
	return err
}
func (n *latitude) UnmarshalJSON(b []byte) error  { return inRange(b, n, -90, 90, "a latitude") }
func (n *longitude) UnmarshalJSON(b []byte) error { return inRange(b, n, -180, 180, "a longitude") }

// inRange reads a number between two bounds.
func inRange[T ~float64](b []byte, into *T, lowest, highest float64, words rentalapi.Expected) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil || v < lowest || v > highest {
		return words
	}
	*into = T(v) + 0 // never the negative zero; likewise above
	return nil
}

// UnmarshalJSON reads the common ISO 8601 forms: a date alone, or a date and a time
// with or without seconds, fractions and offset; no offset is UTC.
func (t *timestamp) UnmarshalJSON(b []byte) error {
	var s string // stays empty, which is no time, if b is no string
	_ = json.Unmarshal(b, &s)
	at, err := parseTime(s)
	if err != nil || at.Unix() < 0 {
		return rentalapi.Expected("an ISO 8601 time from 1970 on")
	}
	*t = timestamp(float64(at.UnixMilli()) / 1000)
	return nil
}

// time returns the point in time, to the millisecond.
func (t timestamp) time() time.Time { return time.UnixMilli(int64(math.Round(float64(t) * 1000))) }

func parseTime(s string) (at time.Time, err error) {
	if at, err = time.Parse(time.DateOnly, s); err == nil {
		return at, nil
	}
	s = strings.ToUpper(strings.Replace(s, " ", "T", 1))
	for _, clock := range []string{"15:04:05", "15:04"} { // fractions are read without being in the layout
		for _, offset := range []string{"Z07:00", "Z0700", "Z07", ""} {
			if at, err = time.Parse("2006-01-02T"+clock+offset, s); err == nil {
				return at, nil
			}
		}
	}
	return time.Time{}, err
}

// UnmarshalJSON reads an absolute https URL without user information; http is accepted if
// the host is a loopback address. It accepts only the characters of RFC 3986, so that a
// link can neither show another address than it leads to nor end where it stands.
func (l *link) UnmarshalJSON(b []byte) error {
	const expected = rentalapi.Expected("an absolute https URL without user information")
	var s string // stays empty, which is no address, if b is no string
	_ = json.Unmarshal(b, &s)
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(s, isForeign) {
		return expected
	}
	address, err := netip.ParseAddr(u.Hostname())
	loopback := err == nil && address.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return expected
	}
	*l = link(s)
	return nil
}

// isForeign returns whether a character must not stand in a URL.
func isForeign(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c)
}

// micros is money in millionths, so that sums of it are exact.
type micros float64

func microsOf[T ~float64](v T) micros { return micros(math.Round(float64(v) * 1e6)) }

func (m micros) value() float64 { return float64(m) / 1e6 }

// boolLabel is a boolean as a label value: true, false or, for null, empty.
func boolLabel(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

// scaled multiplies a known value and rounds away what the multiplication added.
func scaled(v *count, by float64) *count {
	if v == nil {
		return nil
	}
	r := count(math.Round(float64(*v)*by*1e6) / 1e6)
	return &r
}
