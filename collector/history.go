package collector

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// History is what no single response of a collector contains: what changed from one to the
// next. It is immutable. The zero value is that before the first response.
type History struct {
	Metrics []*metric.Sample // of the changes so far
	Events  []Event          // of the last response
	Missing []Component      // that the last response lacks, although they were there within the last hour
	SoldOut bool             // whether an item was sold out when its stock was last known

	token   rentalapi.Fingerprint // of the last response
	records map[string]record     // by the id of the item
	changed *timestamp            // when an item was last added or removed; nil until then
}

// record is an item of an earlier response.
type record struct {
	item
	listed  time.Time // when it was last in a response
	removed bool      // a response without it was complete

	stockSince               time.Time // when its stock was first known
	restocks, sellouts       float64
	lastRestock, lastSellout *timestamp // nil until then
}

// An item that is not listed is remembered for rememberFor, while there are fewer than
// maxRemembered.
const (
	rememberFor   = time.Hour
	maxRemembered = 2 * maxItems
)

// stockMetrics are the metrics of an item's stock. Their labels are those of the item.
type stockMetrics struct{ restocks, sellouts, lastRestock, lastSellout *metric.Definition }

func (m stockMetrics) definitions() []*metric.Definition {
	return []*metric.Definition{m.restocks, m.sellouts, m.lastRestock, m.lastSellout}
}

// Step returns the history after a snapshot of a resource that is shown from now on. What was
// fetched with another token may be of another provider account: nothing of it counts.
func (h History) Step(r *Resource, account string, s Snapshot, now time.Time) History {
	if s.Token != h.token {
		h = History{}
	}
	next := History{token: s.Token, changed: h.changed, records: make(map[string]record, len(s.items))}
	for _, i := range s.items {
		if _, twice := next.records[i.id]; twice { // it moved on between the requests for two pages
			continue
		}
		before, known := h.records[i.id]
		if before.removed && (i.kind.addedAgain || now.Sub(before.listed) >= rememberFor) {
			before, known = record{}, false
		}
		is := before.next(i, now)
		next.records[i.id] = is
		switch {
		case known && i.kind.replaced && before.state != "" && before.state != is.state:
			next.add(before.event(i.kind.removed, before.detail...), now)
			next.add(is.event(i.kind.added, i.detail...), now)
		case known:
			next.Events = append(next.Events, is.changes(before.item)...)
		case h.records != nil && i.kind.added != "":
			next.add(is.event(i.kind.added, i.detail...), now)
		}
		next.SoldOut = next.SoldOut || is.stock != nil && !*is.stock
	}
	for _, id := range slices.Sorted(maps.Keys(h.records)) {
		if _, listed := next.records[id]; !listed {
			next.keep(id, h.records[id], s.partial, now)
		}
	}
	next.addMetrics(newBuilder(account), r, s.items)
	return next
}

// next returns the record of an item after a response that lists it.
func (r record) next(i item, now time.Time) record {
	i.stock, i.price, i.state = cmp.Or(i.stock, r.stock), cmp.Or(i.price, r.price), cmp.Or(i.state, r.state)
	at := timestamp(now.Unix())
	switch {
	case i.stock == nil:
	case r.stock == nil:
		r.stockSince = now
	case *i.stock && !*r.stock:
		r.restocks, r.lastRestock = r.restocks+1, &at
	case !*i.stock && *r.stock:
		r.sellouts, r.lastSellout = r.sellouts+1, &at
	}
	r.item, r.listed, r.removed = i, now, false
	return r
}

// keep keeps the record of an item that is not listed, unless that is too long ago. If the
// response is partial, the item may still be there.
func (h *History) keep(id string, r record, partial bool, now time.Time) {
	if r.kind.removed != "" && !r.removed && !partial {
		h.add(r.event(r.kind.removed, r.detail...), now)
	}
	r.removed = r.removed || !partial
	if now.Sub(r.listed) >= rememberFor || len(h.records) >= maxRemembered {
		return
	}
	h.records[id] = r
	if r.kind == componentEvents && r.removed {
		h.Missing = append(h.Missing, Component{r.labels[0], r.labels[1]})
	}
}

// add adds an event of an item that came or went.
func (h *History) add(e Event, now time.Time) {
	at := timestamp(now.Unix())
	h.Events, h.changed = append(h.Events, e), &at
}

// addMetrics adds the metrics of the items that are listed.
func (h *History) addMetrics(b *metric.Builder, r *Resource, items []item) {
	if r.changed != nil {
		metric.AddOptional(b, r.changed, h.changed)
	}
	for _, i := range items {
		is := h.records[i.id]
		if r.stock == nil || is.stock == nil {
			continue
		}
		b.AddCreated(r.stock.restocks, is.restocks, is.stockSince, i.labels...)
		b.AddCreated(r.stock.sellouts, is.sellouts, is.stockSince, i.labels...)
		metric.AddOptional(b, r.stock.lastRestock, is.lastRestock, i.labels...)
		metric.AddOptional(b, r.stock.lastSellout, is.lastSellout, i.labels...)
	}
	h.Metrics = b.Metrics()
}
