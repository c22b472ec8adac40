package collector

import (
	"maps"
	"time"

	"server_rental_exporter/internal/metric"
)

// stockHistory keeps by id what no single response contains: when each was in stock, and how
// often that changed. It is immutable.
type stockHistory map[string]stockRecord

type stockRecord struct {
	inStock            *bool // nil until it is known
	restocks, sellouts float64
	firstKnown         time.Time
	lastInStock        *timestamp // nil until then; likewise below
	changed            *timestamp
}

// step returns the history after a response with items. One that is seen for the first time has
// changed nothing; one that is not listed, or whose stock is nil because it is not known, keeps
// its record.
func (h stockHistory) step(items []item, now time.Time) stockHistory {
	next, at := stockHistory{}, timestamp(now.Unix())
	maps.Copy(next, h)
	for _, i := range items {
		r, in := next[i.id], i.stock
		switch {
		case in == nil:
			continue
		case r.inStock == nil:
			r.firstKnown = now
		case *in && !*r.inStock:
			r.restocks, r.changed = r.restocks+1, &at
		case !*in && *r.inStock:
			r.sellouts, r.changed = r.sellouts+1, &at
		}
		r.inStock = in
		if *in {
			r.lastInStock = &at
		}
		next[i.id] = r
	}
	return next
}

// stockMetrics are the metrics of a history. Their last label is the id.
type stockMetrics struct{ restocks, sellouts, lastInStock, changed *metric.Definition }

func (m stockMetrics) definitions() []*metric.Definition {
	return []*metric.Definition{m.restocks, m.sellouts, m.lastInStock, m.changed}
}

// apply steps the last history with the items of a response, and adds the metrics of those whose
// stock was ever known. One whose stock is not known stays sold out.
func (m stockMetrics) apply(b *metric.Builder, s *Snapshot, last stockHistory) {
	s.stock = last.step(s.items, s.response.Received)
	for _, i := range s.items {
		if r := s.stock[i.id]; r.inStock != nil {
			s.SoldOut = s.SoldOut || !*r.inStock
			b.AddCreated(m.restocks, r.restocks, r.firstKnown, i.id)
			b.AddCreated(m.sellouts, r.sellouts, r.firstKnown, i.id)
			metric.AddOptional(b, m.lastInStock, r.lastInStock, i.id)
			metric.AddOptional(b, m.changed, r.changed, i.id)
		}
	}
}
