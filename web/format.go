package web

import (
	"cmp"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// none is shown for a value that is not known.
const none = "–"

// The maximum number of characters of a text from the provider, and of an error.
const maxText, maxError = 80, 300

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

// errorText returns the text of an error in one line.
func errorText(s string) string { return clip(strings.ReplaceAll(s, "\n", "; "), maxError) }

// join returns at most n of the texts, and the number of the others.
func join(texts []string, n int) string {
	shown := slices.Clone(texts[:min(n, len(texts))])
	for i, t := range shown {
		shown[i] = text(t)
	}
	list := strings.Join(shown, ", ")
	if more := len(texts) - n; more > 0 {
		list += " and " + strconv.Itoa(more) + " more"
	}
	return cmp.Or(list, none)
}

// money formats an amount of money to the cent.
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

// count formats a number with its noun, such as 1 server or 2 servers.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// duration formats a duration as Prometheus does, to the second, minute or hour.
func duration(d time.Duration) string {
	unit := time.Second
	switch {
	case d >= 2*day:
		unit = time.Hour
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
	switch days := int(midnight(t).Sub(midnight(v.Now)) / day); {
	case days == 0:
		return on + " (today)"
	case days > 0:
		return on + " (" + count(days, "day") + ")"
	default:
		return on + " (" + count(-days, "day") + " ago)"
	}
}

// Ago formats how long ago a time was.
func (v *view) Ago(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return duration(v.Now.Sub(t)) + " ago"
}

// table has the first rows of a list, and the number of the others.
type table struct {
	Rows any
	More int
}

func cut(n int, rows any) table {
	all := reflect.ValueOf(rows)
	shown := min(n, all.Len())
	return table{all.Slice(0, shown).Interface(), all.Len() - shown}
}
