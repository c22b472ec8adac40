package collector

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// Changes holds the changes from one response of a collector to the next. It is immutable. The zero
// value is that before the first response.
type Changes struct {
	Metrics []*metric.Sample // metrics of all changes so far
	Events  []Event          // events of the last response
	SoldOut bool             // whether an item is sold out, or came in stock within the last hour

	known   bool // whether the last response is known: items that it lacks are added
	records map[itemID]record
	kept    int                              // bytes of the records of items that are not listed
	last    map[*metric.Definition]timestamp // time of the last change of any item
}

// Event is a change from one response to the next, at the time at which the later one was shown.
type Event struct {
	Time    time.Time
	Message string      // constant text
	Keys    [][2]string // names with values, without the account; no value is secret
}

// change is a kind of change of an item.
type change int

const (
	itemAdded change = iota
	itemRemoved
	restock
	sellout
	priceChange
	stateChange
	numChanges
)

// output names the event and the metrics of a change. Those that are empty or nil do not exist.
type output struct {
	event string             // message of the event
	total *metric.Definition // counter of the item
	last  *metric.Definition // time of the last change of the item
}

// changeKind describes the changes of one kind of items. Definitions may be nil.
type changeKind struct {
	outputs       [numChanges]output
	previousPrice *metric.Definition // price of the item before its last change

	// lastOf returns the metric with the time at which any item last changed in some way, from one
	// state to another; nil if there is none. If a removed item returns, it is added again; without
	// lastOf only after rememberFor.
	lastOf func(what change, before, after state) *metric.Definition

	remembers int  // most bytes of items that are not listed; 0 for maxKept
	tolerated int  // responses in a row that may lack an item before it is removed
	isWatch   bool // whether an item that is added in stock came in stock, and counters start before its stock is known
}

var componentChanges = &changeKind{outputs: [numChanges]output{stateChange: {event: "component state changed"}}}

// itemID identifies an item of a response. Texts that are not needed are empty.
type itemID [3]string

// item holds the compared values of an item of a response. An unknown value stands for the last known
// one.
type item struct {
	id     itemID      // unique in the response
	self   string      // another value means that the id stands for another item; empty if it is not known
	labels []string    // labels of the item's metrics, without the account
	keys   [][2]string // keys of all its events
	detail [][2]string // more keys, for events without a value before
	stock  *bool
	price  *price
	state  state
}

// record is what is known of an item of an earlier response.
type record struct {
	item
	since, listed time.Time // times of the first and the last response with it
	missing       int       // complete responses in a row that lacked it
	removed       bool      // if it returns, it may be added
	tallies       [numChanges]tally
	previousPrice *price // nil until the price changes
}

// tally is the number of times that a change happened to an item, and the last of these times.
type tally struct {
	n  float64
	at timestamp // 0 if there was none
}

// An item that is not listed is remembered for rememberFor, while all of these take at most maxKept
// bytes: recordBytes each, and their texts.
const (
	rememberFor = time.Hour
	maxKept     = 4 << 20
	recordBytes = 800
)

// Step returns the changes up to a snapshot of a resource, which is shown from now on.
func (c Changes) Step(r *Resource, account string, s Snapshot, now time.Time) Changes {
	next := c.step(r.changes, s.items, s.partial, now)
	b := newBuilder(account)
	next.addMetrics(b, r.changes)
	next.Metrics = b.Metrics()
	return next
}

// Forget returns the changes after the data expired. The next response brings no changes: what was
// not known has not changed.
func (c Changes) Forget() Changes {
	next := Changes{last: c.last, records: make(map[itemID]record, len(c.records))}
	for id, r := range c.records {
		r.stock, r.price, r.state, r.self = nil, nil, "", ""
		next.records[id] = r
	}
	return next
}

// step returns the changes up to a response with items; if they are partial, others may exist.
func (c Changes) step(kind *changeKind, items []item, partial bool, now time.Time) Changes {
	next := Changes{known: true, last: map[*metric.Definition]timestamp{}, records: make(map[itemID]record, len(items))}
	maps.Copy(next.last, c.last)
	for _, i := range items {
		r, known := c.records[i.id]
		isOther := r.self != "" && i.self != "" && r.self != i.self
		if isOther && !r.removed {
			next.remove(kind, &r, now)
		}
		if !known || isOther || r.removed && now.Sub(r.listed) >= rememberFor {
			r = record{since: now}
			if c.known {
				next.count(kind, itemAdded, i, &r, now, i.detail...)
				if kind.isWatch {
					r.stock = new(bool)
				}
			}
		}
		next.list(kind, i, r, now)
	}
	byID := func(a, b itemID) int { return slices.Compare(a[:], b[:]) }
	for _, id := range slices.SortedFunc(maps.Keys(c.records), byID) {
		r := c.records[id]
		if _, listed := next.records[id]; listed {
			continue
		}
		if !partial {
			r.missing++
		}
		if !c.known { // that it went while the data was not known is no change
			r.removed = true
		} else if !r.removed && r.missing > kind.tolerated {
			next.remove(kind, &r, now)
		}
		next.keep(kind, r, now)
	}
	return next
}

// list keeps the record of an item that is listed, and counts its changes since its former record.
func (c *Changes) list(kind *changeKind, i item, r record, now time.Time) {
	i.stock, i.price, i.state, i.self = cmp.Or(i.stock, r.stock), cmp.Or(i.price, r.price), cmp.Or(i.state, r.state), cmp.Or(i.self, r.self)
	if r.stock != nil && *r.stock != *i.stock {
		what := sellout
		if *i.stock {
			what = restock
		}
		c.count(kind, what, i, &r, now, i.detail...)
	}
	if r.price != nil && *r.price != *i.price {
		r.previousPrice = r.price
		c.count(kind, priceChange, i, &r, now, [2]string{"before", numberText(r.price)}, [2]string{"after", numberText(i.price)})
	}
	if r.state != "" && r.state != i.state {
		c.count(kind, stateChange, i, &r, now, [2]string{"before", string(r.state)}, [2]string{"after", string(i.state)})
	}
	isRecent := now.Sub(r.tallies[restock].at.time()) < rememberFor
	c.SoldOut = c.SoldOut || i.stock != nil && (!*i.stock || isRecent)
	r.item, r.listed, r.missing, r.removed = i, now, 0, false
	r.tallies[itemRemoved] = tally{}
	c.records[i.id] = r
}

// remove counts that an item was removed.
func (c *Changes) remove(kind *changeKind, r *record, now time.Time) {
	r.removed = true
	c.count(kind, itemRemoved, r.item, r, now, r.detail...)
	r.keys, r.detail = nil, nil
}

// keep keeps the record of an item that is not listed, unless it went too long ago, or is added again
// anyway if it returns.
func (c *Changes) keep(kind *changeKind, r record, now time.Time) {
	removed := r.tallies[itemRemoved].at
	went := max(removed, timestamp(r.listed.Unix()))
	size := recordBytes + len(r.self) + len(r.state)
	for _, text := range slices.Concat(r.id[:], r.labels) {
		size += len(text)
	}
	for _, key := range r.keys {
		size += len(key[1])
	}
	if now.Sub(went.time()) >= rememberFor || removed > 0 && kind.lastOf != nil || c.kept+size > cmp.Or(kind.remembers, maxKept) {
		return
	}
	c.kept += size
	c.records[r.id] = r
}

// count counts a change of an item since its former record, and adds its event if there is one.
func (c *Changes) count(kind *changeKind, what change, i item, r *record, now time.Time, keys ...[2]string) {
	r.tallies[what] = tally{r.tallies[what].n + 1, timestamp(now.Unix())}
	if message := kind.outputs[what].event; message != "" {
		c.Events = append(c.Events, Event{now, message, slices.Concat(i.keys, keys)})
	}
	if kind.lastOf == nil || what == priceChange { // a state that becomes known with a price did not change
		return
	}
	if d := kind.lastOf(what, r.state, i.state); d != nil {
		c.last[d] = timestamp(now.Unix())
	}
}

// addMetrics adds the metrics of the items that are remembered.
func (c Changes) addMetrics(b *metric.Builder, kind *changeKind) {
	for d, at := range c.last {
		b.Add(d, float64(at))
	}
	for _, r := range c.records {
		for what, out := range kind.outputs {
			tally := r.tallies[what]
			if out.total != nil && (r.stock != nil || kind.isWatch) {
				b.AddCreated(out.total, tally.n, r.since, r.labels...)
			}
			if out.last != nil && tally.at > 0 {
				b.Add(out.last, float64(tally.at), r.labels...)
			}
		}
		if kind.previousPrice != nil {
			metric.AddOptional(b, kind.previousPrice, r.previousPrice, r.labels...)
		}
	}
}
