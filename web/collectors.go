package web

import (
	"strings"
	"time"
)

// collectorRow is the state of a collector, as every section shows it.
type collectorRow struct {
	health
	Words, Class string        // the state, and its CSS class
	Age          time.Duration // of the data: the time since its fetch, and how old the response was then
	Known        bool          // there is data, and it has not expired
	Causes       []string      // of invalid items; they name the items only with the overview
	Errors       []string      // of the last fetch, and of invalid items
}

func (v *view) newRow(h health) *collectorRow {
	r := &collectorRow{health: h, Age: v.Now.Sub(h.Made), Known: !h.Made.IsZero()}
	for _, c := range h.Invalid.Causes {
		if !v.Overview() {
			c.Item = ""
			if strings.HasPrefix(c.Field, "locations.") { // the ids of a location and a component follow
				c.Field = "locations"
			}
		}
		r.Causes = append(r.Causes, errorText(c.Error()))
	}
	if h.Err != nil {
		r.Errors = append(r.Errors, errorText(h.Err.Error()))
	}
	r.Errors = append(r.Errors, r.Causes...)
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
	case h.Invalid.Items > 0:
		r.Words, r.Class = "working, invalid items", "warn"
	default:
		r.Words, r.Class = "working", "good"
	}
	return r
}

// cause returns why the last fetch failed, without the path that was fetched, which differs
// between collectors that fail for the same cause.
func (r *collectorRow) cause() string {
	cause := r.Err.Error()
	if path, rest, found := strings.Cut(cause, ": "); found && strings.HasPrefix(path, "/") {
		cause = rest
	}
	return errorText(cause)
}

// Data says how old the data is, or why there is none.
func (r *collectorRow) Data() string {
	if !r.Known {
		return r.Words
	}
	return duration(r.Age) + " old, " + r.Words
}
