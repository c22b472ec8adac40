package collector

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The types below are the values that the provider documents, with the range in
// which each makes sense. In a wire struct they stand behind a pointer if null or
// a missing field must stay unknown. A value out of range or of another JSON type
// makes its field invalid.
type (
	// count is a number of 0 or more: how many, how large, how long.
	count float64
	// price is what something costs, 0 to 10 million, rounded to a millionth.
	price float64
	// amount is money that may be owed, up to 100 million either way, rounded to a
	// millionth.
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
func (n *count) UnmarshalJSON(b []byte) error     { return inRange(b, 0, 1e15, n) }
func (n *price) UnmarshalJSON(b []byte) error     { return readMoney(b, 0, 1e7, n) }
func (n *amount) UnmarshalJSON(b []byte) error    { return readMoney(b, -1e8, 1e8, n) }
func (n *latitude) UnmarshalJSON(b []byte) error  { return inRange(b, -90, 90, n) }
func (n *longitude) UnmarshalJSON(b []byte) error { return inRange(b, -180, 180, n) }

// Expected implements rentalapi.Expecter; likewise below.
func (*count) Expected() string     { return "a number of 0 or more" }
func (*price) Expected() string     { return "a price from 0 to 10 million" }
func (*amount) Expected() string    { return "an amount of at most 100 million" }
func (*latitude) Expected() string  { return "a latitude" }
func (*longitude) Expected() string { return "a longitude" }
func (*timestamp) Expected() string { return "an ISO 8601 time from 1970 on" }
func (*link) Expected() string      { return "an absolute https URL without user information" }

var errOutOfRange = errors.New("out of range")

// inRange reads a number between two bounds.
func inRange[T ~float64](b []byte, lowest, highest float64, into *T) error {
	var v float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v < lowest || v > highest {
		return errOutOfRange
	}
	*into = T(v)
	return nil
}

// readMoney reads a number between two bounds and rounds it to a millionth: what the
// provider calculates with may leave a rest that is no money.
func readMoney[T ~float64](b []byte, lowest, highest float64, into *T) error {
	if err := inRange(b, lowest, highest, into); err != nil {
		return err
	}
	*into = T(microsOf(*into).value()) + 0 // never the negative zero
	return nil
}

// UnmarshalJSON reads the common ISO 8601 forms: a date alone, or a date and a time
// with or without seconds, fractions and offset; no offset is UTC.
func (t *timestamp) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	at, err := parseTime(s)
	if err != nil {
		return err
	}
	if at.Unix() < 0 {
		return errOutOfRange
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
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	u, err := url.Parse(s)
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(u.Hostname())
	loopback := err == nil && address.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) || u.Hostname() == "" || u.User != nil || strings.ContainsFunc(s, isForeign) {
		return errOutOfRange
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
