package web

import "time"

// maxError is the maximum number of characters of an error.
const maxError = 300

// collectorRow is the state of a collector, as every section shows it.
type collectorRow struct {
	health
	Words, Class string        // the state, and its CSS class
	Age          time.Duration // of the data: the time since its fetch, and how old the response was then
	Next         time.Duration // until the next fetch
	Known        bool          // there is data, and it has not expired
	Stale        bool          // there was data, which has expired or is old
	Causes       []string      // of invalid items
}

// newCollectorRow returns the row of a collector. Without ids, causes do not name the
// item.
func newCollectorRow(h health, now time.Time, ids bool) *collectorRow {
	r := &collectorRow{health: h, Age: now.Sub(h.Taken), Next: h.Next.Sub(now), Known: now.Before(h.Taken.Add(h.MaxAge))}
	if h.ResponseAge != nil {
		r.Age += *h.ResponseAge
	}
	old := r.Age >= 10*h.Interval
	r.Stale = !h.LastSuccess.IsZero() && (old || !r.Known)
	for _, c := range h.Invalid.Causes {
		if !ids {
			c.Item = ""
		}
		r.Causes = append(r.Causes, c.Error())
	}
	switch {
	case h.LastSuccess.IsZero() && h.Err == nil:
		r.Words, r.Class = "fetching", "wait"
	case h.LastSuccess.IsZero():
		r.Words, r.Class = "failing, no data", "bad"
	case !r.Known && h.Err == nil: // a long walk through pages, or only older copies came
		r.Words, r.Class = "fetching, data expired", "warn"
	case !r.Known:
		r.Words, r.Class = "failing, data expired", "bad"
	case h.Err != nil:
		r.Words, r.Class = "failing, last data shown", "warn"
	default:
		r.Words, r.Class = "fresh", "good"
		if old {
			r.Words, r.Class = "old (10 intervals or more)", "warn"
		}
		if h.Invalid.Items > 0 {
			r.Words, r.Class = r.Words+", invalid items", "warn"
		}
	}
	return r
}

// Errors returns those of the last fetch, and of invalid items.
func (r *collectorRow) Errors() []string {
	var errs []string
	if r.Err != nil {
		errs = append(errs, clip(r.Err.Error(), maxError))
	}
	if r.DuplicateOf != "" {
		errs = append(errs, r.duplicate())
	}
	for _, c := range r.Causes {
		errs = append(errs, clip(c, maxError))
	}
	return errs
}

func (r *collectorRow) duplicate() string {
	return "same provider account as " + text(r.DuplicateOf) + ": sums over accounts count it twice"
}

// Data says how old the data is, or why there is none.
func (r *collectorRow) Data() string {
	if !r.Known {
		return r.Words
	}
	return duration(r.Age) + " old, " + r.Words
}
