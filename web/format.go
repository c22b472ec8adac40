package web

import (
	"cmp"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// none is shown for a value that is not known.
const none = "–"

// The maximum number of characters of a text from the provider, and of an error; and of texts in a list.
const maxText, maxError, maxJoined = 80, 300, 10

// text returns at most maxText characters of a text from the provider. It replaces
// characters that do not print, or that change the direction of the text after them.
// The template escapes the result.
func text(s string) string {
	if strings.TrimSpace(s) == "" {
		return none
	}
	return clip(s, maxText)
}

var unprintable = regexp.MustCompile(`[^\pL\pM\pN\pP\pS ]`)

// clip returns at most n characters, with those that do not print replaced.
func clip(s string, n int) string {
	runes, end := []rune(s), ""
	if len(runes) > n {
		runes, end = runes[:n], "…"
	}
	return unprintable.ReplaceAllString(string(runes), "\uFFFD") + end
}

// errorText returns an error and its hint in one line.
func errorText(err error) string {
	text := err.Error()
	if hint := rentalapi.ErrorOf(err).Hint; hint != "" {
		text += " (" + hint + ")"
	}
	return clip(strings.ReplaceAll(text, "\n", "; "), maxError)
}

// join returns the first of the texts, and the number of the others.
func join(texts []string) string {
	var shown []string
	for _, t := range texts[:min(maxJoined, len(texts))] {
		shown = append(shown, text(t))
	}
	if others := len(texts) - len(shown); others > 0 {
		shown = append(shown, "and "+strconv.Itoa(others)+" more")
	}
	return cmp.Or(strings.Join(shown, ", "), none)
}

// money formats an amount of money to the cent. Less than half a cent is 0.00, which no sign has.
func money(v float64) string { return format(math.Round(100*v)/100, 2) }

// number formats a number with all its decimals.
func number(v float64) string { return format(v, -1) }

func format(v float64, decimals int) string {
	if math.IsNaN(v) {
		return none
	}
	return strconv.FormatFloat(v+0, 'f', decimals, 64) // -0 + 0 is 0
}

// gibibytes formats a number of bytes in GiB.
func gibibytes(v float64) string { return number(math.Round(v/(1<<30)*10) / 10) }

// duration formats a duration as Prometheus does, to the second or minute, and as days from two on.
func duration(d time.Duration) string {
	unit := time.Second
	switch {
	case d >= 2*day:
		return strconv.Itoa(int(d/day)) + "d"
	case d >= time.Hour:
		unit = time.Minute
	}
	return model.Duration(max(d, 0).Truncate(unit)).String()
}

const day = 24 * time.Hour

func midnight(t time.Time) time.Time { return t.UTC().Truncate(day) }

// Date formats a day and its distance from today.
func (v *view) Date(t time.Time) string {
	on := t.UTC().Format(time.DateOnly)
	switch ahead := midnight(t).Sub(midnight(v.Now)); {
	case ahead > 0:
		return on + " (in " + duration(ahead) + ")"
	case ahead < 0:
		return on + " (" + duration(-ahead) + " ago)"
	}
	return on + " (today)"
}

// Ago formats how long ago a time was that the exporter saw.
func (v *view) Ago(t time.Time) string {
	if t.IsZero() {
		return "not since the start"
	}
	return duration(v.Now.Sub(t)) + " ago"
}

// table has the first rows of a list, and the number of the others.
type table struct {
	Rows   any
	Others int
}

// cut returns at most n rows of a slice of any type.
func cut(n int, rows any) table {
	all := reflect.ValueOf(rows)
	shown := min(n, all.Len())
	return table{all.Slice(0, shown).Interface(), all.Len() - shown}
}
