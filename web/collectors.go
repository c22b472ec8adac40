package web

import "time"

// maxError is the maximum number of characters of an error.
const maxError = 300

type collectorRow struct {
	health
	Words, Class string
	Age, Next    time.Duration
	Errors       []string // of the last fetch, and of invalid items
}

// collectors returns the rows of all collectors. Without ids, causes do not name the
// item.
func collectors(all []health, now time.Time, ids bool) []collectorRow {
	rows := make([]collectorRow, 0, len(all))
	for _, h := range all {
		r := collectorRow{health: h, Age: dataAge(h, now), Next: h.Next.Sub(now)}
		r.Words, r.Class = describeState(h, now)
		if h.Err != nil {
			r.Errors = append(r.Errors, clip(h.Err.Error(), maxError))
		}
		if h.DuplicateOf != "" {
			r.Errors = append(r.Errors, duplicateText(h))
		}
		for _, c := range h.Invalid.Causes {
			if !ids {
				c.Item = ""
			}
			r.Errors = append(r.Errors, clip(c.Error(), maxError))
		}
		rows = append(rows, r)
	}
	return rows
}

func duplicateText(h health) string {
	return "same provider account as " + text(h.DuplicateOf) + ": sums over accounts count it twice"
}

// dataAge returns how old a collector's data is: the time since the fetch, and how old
// the response was then.
func dataAge(h health, now time.Time) time.Duration {
	age := now.Sub(h.LastSuccess)
	if h.ResponseAge != nil {
		age += *h.ResponseAge
	}
	return age
}

// isOld returns whether the data of a collector is not fresh any more.
func isOld(h health, now time.Time) bool { return dataAge(h, now) >= 10*h.Interval }

// isExpired returns whether a collector has no data, or has dropped it.
func isExpired(h health, now time.Time) bool { return !now.Before(h.LastSuccess.Add(h.MaxAge)) }

// describeState returns a collector's state in a few words, and its CSS class.
func describeState(h health, now time.Time) (word, class string) {
	expired := isExpired(h, now)
	switch {
	case h.LastSuccess.IsZero() && h.Err == nil:
		return "fetching", "wait"
	case h.LastSuccess.IsZero():
		return "failing, no data", "bad"
	case expired && h.Err == nil: // a long walk through pages
		return "fetching, data expired", "warn"
	case expired:
		return "failing, data expired", "bad"
	case h.Err != nil:
		return "failing, last data shown", "warn"
	}
	word, class = "fresh", "good"
	if isOld(h, now) {
		word, class = "old (10 intervals or more)", "warn"
	}
	if h.Invalid.Items > 0 {
		word, class = word+", invalid items", "warn"
	}
	return word, class
}
