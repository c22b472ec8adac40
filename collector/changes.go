package collector

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// Changes holds the changes from one response of a collector to the next. It is immutable. The zero
// value is that before the first response.
type Changes struct {
	Metrics []*metric.Sample // metrics of all changes so far
	Events  []Event          // events of the last response
	SoldOut bool             // whether an item is sold out, or came in stock within the last hour

	isCurrent bool // whether the last response is shown: items that it lacks are added
	records   map[itemID]record
	kept      int                              // bytes of the records of items that are not listed
	last      map[*metric.Definition]timestamp // time of the last change of any item
}

// Event is a change from one response to the next, at the time at which the later one was shown.
type Event struct {
	Time    time.Time
	Message string      // constant text
	Keys    [][2]string // names with values, without the account; no value is secret
}

// attribute is a property of an item that is compared.
type attribute int

const (
	attrPresence attribute = iota // isListed or isGone
	attrIdentity                  // another value means that the id stands for another item
	attrStock                     // true or false
	attrPrice                     // number
	attrState                     // text of the provider
	attrClass                     // text of ours that the state leads to
	numAttributes
)

// values are those of an item. An empty one is not known, and stands for the last known one.
type values [numAttributes]string

// Values of attrPresence.
const isListed, isGone = "listed", "gone"

// change is what follows if an attribute of an item has another value than before, and both are known.
// Definitions may be nil.
type change struct {
	of        attribute
	from, to  string             // the values before and after; empty for any
	event     string             // message; empty if there is none. It has the values before and after if to is empty
	total     *metric.Definition // counter of the item
	last      *metric.Definition // time of the item's last change
	lastOfAny *metric.Definition // time of the last change of any item
	previous  *metric.Definition // number of the item before its last change
}

// maxChanges bounds the changes of a changeKind.
const maxChanges = 6

// changeKind describes the changes of one kind of items.
type changeKind struct {
	changes []change
	absent  values             // values before an item is added
	removed *metric.Definition // time at which an item was removed, until it returns; nil if there is none

	forgets   bool // whether a removed item that returns is added; else only after rememberFor
	remembers int  // most bytes of items that are not listed; 0 for maxKept
	tolerated int  // responses in a row that may lack an item before it is removed
}

var componentChanges = &changeKind{changes: []change{{of: attrState, event: "component state changed"}}}

// itemID identifies an item of a response. Texts that are not needed are empty.
type itemID [2]string

// item is what is compared of an item of a response.
type item struct {
	id     itemID // unique in the response
	values values
	labels []string    // labels of the item's metrics, without the account
	keys   [][2]string // keys of all its events
	detail [][2]string // more keys, for events without a value before

	isUnmatched bool // whether it is listed but ignored: it is remembered as sold out, and not removed
}

// record is what is remembered of an item. It is removed if a time of that is set.
type record struct {
	item
	since, listed, removed time.Time // times of the first and the last response with it, and of its removal
	restocked              time.Time // last time at which it came in stock
	missing                int       // complete responses in a row that lacked it
	tallies                [maxChanges]tally
	previous               string // value of an attribute before its last change
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
// not known has not changed. What that one lacks is added if it comes later.
func (c Changes) Forget() Changes {
	next := Changes{last: c.last, records: make(map[itemID]record, len(c.records))}
	for id, r := range c.records {
		r.values = values{}
		next.records[id] = r
	}
	return next
}

// step returns the changes up to a response with items; if they are partial, others may exist.
func (c Changes) step(kind *changeKind, items []item, partial bool, now time.Time) Changes {
	next := Changes{isCurrent: true, last: map[*metric.Definition]timestamp{}, records: make(map[itemID]record, len(items))}
	maps.Copy(next.last, c.last)
	unmatched := map[itemID]bool{}
	for _, i := range items {
		r, found := c.records[i.id]
		if i.isUnmatched {
			unmatched[i.id] = found
			continue
		}
		before := r.values[attrIdentity]
		isOther := before != "" && i.values[attrIdentity] != "" && before != i.values[attrIdentity]
		if isOther && r.removed.IsZero() {
			next.remove(kind, &r, now)
		}
		if !found || isOther || !r.removed.IsZero() && now.Sub(r.listed) >= rememberFor {
			r = record{since: now}
			if c.isCurrent {
				r.values = kind.absent
				r.values[attrPresence] = isGone
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
		if unmatched[id] {
			r.values[attrStock] = "false"
			r.leave(now)
		}
		if !partial && r.removed.IsZero() {
			if r.values[attrPresence] == "" { // that it went while the data was not known is no change
				continue
			}
			if r.missing++; r.missing > kind.tolerated {
				next.remove(kind, &r, now)
			}
		}
		next.keep(kind, r, now)
	}
	return next
}

// list keeps the record of an item that is listed, and tells its changes since its former record.
func (c *Changes) list(kind *changeKind, i item, r record, now time.Time) {
	before := r.values
	for a, value := range i.values {
		i.values[a] = cmp.Or(value, before[a])
	}
	i.values[attrPresence] = isListed
	if before[attrStock] == "false" && i.values[attrStock] == "true" {
		r.restocked = now
	}
	c.SoldOut = c.SoldOut || i.values[attrStock] == "false" || i.values[attrStock] == "true" && now.Sub(r.restocked) < rememberFor
	r.item, r.listed, r.removed, r.missing = i, now, time.Time{}, 0
	c.tell(kind, &r, before, now)
	c.records[i.id] = r
}

// remove tells that an item was removed.
func (c *Changes) remove(kind *changeKind, r *record, now time.Time) {
	before := r.values
	r.values[attrPresence], r.values[attrClass] = isGone, kind.absent[attrClass]
	c.tell(kind, r, before, now)
	r.leave(now)
}

// leave marks an item as removed, which is not told of it again.
func (r *record) leave(now time.Time) {
	if r.removed.IsZero() {
		r.removed = now
	}
	r.values[attrPresence], r.keys, r.detail = "", nil, nil
}

// keep keeps the record of an item that is not listed, unless it went too long ago, or is added again
// anyway if it returns.
func (c *Changes) keep(kind *changeKind, r record, now time.Time) {
	size := recordBytes
	for _, text := range slices.Concat(r.id[:], r.labels, r.values[:]) {
		size += len(text)
	}
	for _, key := range r.keys {
		size += len(key[1])
	}
	isRecent := now.Sub(r.listed) < rememberFor || now.Sub(r.removed) < rememberFor
	if isRecent && (r.removed.IsZero() || !kind.forgets) && c.kept+size <= cmp.Or(kind.remembers, maxKept) {
		c.kept += size
		c.records[r.id] = r
	}
}

// tell counts the changes of an item since its former values, and adds their events.
func (c *Changes) tell(kind *changeKind, r *record, before values, now time.Time) {
	for n, change := range kind.changes {
		from, to := before[change.of], r.values[change.of]
		if from == "" || to == "" || from == to || from != cmp.Or(change.from, from) || to != cmp.Or(change.to, to) {
			continue
		}
		r.tallies[n] = tally{r.tallies[n].n + 1, timestamp(now.Unix())}
		if change.previous != nil {
			r.previous = from
		}
		if change.lastOfAny != nil {
			c.last[change.lastOfAny] = timestamp(now.Unix())
		}
		if change.event == "" {
			continue
		}
		keys := r.detail
		if change.to == "" {
			keys = [][2]string{{"before", from}, {"after", to}}
		}
		c.Events = append(c.Events, Event{now, change.event, slices.Concat(r.keys, keys)})
	}
}

// addMetrics adds the metrics of the items that are remembered.
func (c Changes) addMetrics(b *metric.Builder, kind *changeKind) {
	for d, at := range c.last {
		b.Add(d, float64(at))
	}
	for _, r := range c.records {
		for n, change := range kind.changes {
			tally := r.tallies[n]
			if change.total != nil && cmp.Or(r.values[change.of], kind.absent[change.of]) != "" { // counted from the first known value on
				b.AddCreated(change.total, tally.n, r.since, r.labels...)
			}
			if change.last != nil && tally.at > 0 {
				b.Add(change.last, float64(tally.at), r.labels...)
			}
			if change.previous != nil && r.previous != "" {
				number, _ := strconv.ParseFloat(r.previous, 64) // numberText wrote it
				b.Add(change.previous, number, r.labels...)
			}
		}
		if kind.removed != nil && !r.removed.IsZero() {
			b.Add(kind.removed, float64(r.removed.Unix()), r.labels...)
		}
	}
}
