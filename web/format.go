package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// none is what stands for a value that is not known.
const none = "–"

// maxText is how many characters of a text from the provider are shown.
const maxText = 80

// text makes a text from the provider fit to be shown: without characters that do not
// print or change the direction of what follows, and not too long. The template
// escapes it.
func text(s string) string {
	if strings.TrimSpace(s) == "" {
		return none
	}
	return clip(s, maxText)
}

// clip keeps at most n characters.
func clip(s string, n int) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		switch {
		case i == n:
			return b.String() + "…"
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteRune('�')
		}
	}
	return b.String()
}

// join lists texts, at most n of them.
func join(texts []string, n int) string {
	if len(texts) == 0 {
		return none
	}
	shown := make([]string, 0, n)
	for _, t := range texts[:min(n, len(texts))] {
		shown = append(shown, text(t))
	}
	list := strings.Join(shown, ", ")
	if more := len(texts) - len(shown); more > 0 {
		list += " and " + grouped(more) + " more"
	}
	return list
}

// money is an amount with two decimals and groups of three digits.
func money(v *float64) string {
	if v == nil {
		return none
	}
	cents := math.Round(math.Abs(*v) * 100)
	sign := ""
	if *v < 0 && cents > 0 {
		sign = "-"
	}
	whole := math.Floor(cents / 100)
	return fmt.Sprintf("%s%s.%02.0f", sign, grouped(int(whole)), cents-whole*100)
}

// number is a number as short as it can be.
func number(v *float64) string {
	if v == nil {
		return none
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// gibibytes is a size in bytes.
func gibibytes(v *float64) string {
	if v == nil {
		return none
	}
	gib := math.Round(*v/(1<<30)*10) / 10
	return number(&gib) + " GiB"
}

// grouped is a number in groups of three digits.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count is a number and what it counts, such as 1 server or 2 servers.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// duration is a duration in the one or two units that matter.
func duration(d time.Duration) string {
	d = max(d, 0)
	switch minutes := int(d.Minutes()); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d < 48*time.Hour && minutes%60 == 0:
		return fmt.Sprintf("%d h", minutes/60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	default:
		return grouped(int(d.Hours())/24) + " days"
	}
}

// at is the time of a timestamp metric.
func at(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }

const day = 24 * time.Hour

func midnight(t time.Time) time.Time { return t.UTC().Truncate(day) }

// date is a day and how far away it is.
func date(t, now time.Time) string {
	on := t.UTC().Format(time.DateOnly)
	switch days := int(midnight(t).Sub(midnight(now)) / day); {
	case days == 0:
		return on + " (today)"
	case days > 0:
		return on + " (" + count(days, "day") + ")"
	default:
		return on + " (" + count(-days, "day") + " ago)"
	}
}

// moment is a point in time and how long ago it was.
func moment(t, now time.Time) string {
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC (" + duration(now.Sub(t)) + " ago)"
}

// table is the beginning of a list, and how many more rows it has.
type table[T any] struct {
	Rows []T
	More int
}

// cut keeps at most n rows.
func cut[T any](rows []T, n int) table[T] {
	if len(rows) <= n {
		return table[T]{Rows: rows}
	}
	return table[T]{rows[:n], len(rows) - n}
}
