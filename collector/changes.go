package collector

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// Changes remembers the items of a collector's responses, and what changed from one to the next. The
// zero value is that before the first response.
type Changes struct {
	Metrics []*metric.Sample // metrics of all changes so far; replaced, and never changed
	SoldOut bool             // whether an item is sold out, or came in stock within the last hour

	isCurrent bool // whether the last response is shown: items that it lacks are added
	records   map[string]record
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
	last      *metric.Definition // time of the item's last change; that of a removal ends when the item returns
	lastOfAny *metric.Definition // time of the last change of any item
	previous  *metric.Definition // number of the item before its last change
}

// changeKind describes the changes of one kind of items.
type changeKind struct {
	changes   []change
	absent    values // values before an item is added
	forgets   bool   // whether a removed item that returns is added; else only after rememberFor
	remembers int    // most bytes of items that are not listed; 0 for maxKept
	tolerated int    // responses in a row that may lack an item before it is removed
}

// item is what is compared of an item of a response.
type item struct {
	id     string // unique in the response
	values values
	labels []string    // labels of the item's metrics, without the account
	keys   [][2]string // keys of all its events
	detail [][2]string // more keys, for events without a value before
}

// record is what is remembered of an item.
type record struct {
	item
	since, listed time.Time // times of the first and the last response with it
	removed       time.Time // time of its removal; zero if it is not removed
	restocked     time.Time // last time at which it came in stock
	missing       int       // complete responses in a row that lacked it
	tallies       []tally   // of each change of the kind
	previous      string    // value of an attribute before its last change
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

// Step compares a snapshot of a resource, which is shown from now on, with those before, and returns
// the events.
func (c *Changes) Step(r *Resource, account string, s *Snapshot, now time.Time) []Event {
	events := c.step(r.changes, s.items, nil, s.partial, now)
	b := newBuilder(account)
	c.addMetrics(b, r.changes)
	c.Metrics, s.items = b.Metrics(), nil
	return events
}

// Forget makes all values unknown, because the data expired: the next response brings no changes. What
// that one lacks is added if it comes later.
func (c *Changes) Forget() {
	c.isCurrent = false
	for id, r := range c.records {
		r.values = values{}
		c.records[id] = r
	}
}

// step compares the items of a response with the former ones, and returns the events. If the response is
// partial, it may lack items that exist. Unmatched items are listed but ignored: if they are remembered,
// then as sold out.
func (c *Changes) step(kind *changeKind, items []item, unmatched map[string]bool, partial bool, now time.Time) (events []Event) {
	former, wasCurrent := c.records, c.isCurrent
	c.records, c.isCurrent, c.SoldOut, c.kept = make(map[string]record, len(items)), true, false, 0
	for _, i := range items {
		r, found := former[i.id]
		delete(former, i.id)
		before := r.values[attrIdentity]
		isOther := before != "" && i.values[attrIdentity] != "" && before != i.values[attrIdentity]
		if isOther {
			events = append(events, c.remove(kind, &r, now)...)
		}
		if !found || isOther || !r.removed.IsZero() && now.Sub(r.listed) >= rememberFor {
			r = record{since: now, tallies: make([]tally, len(kind.changes))}
			if wasCurrent {
				r.values = kind.absent
				r.values[attrPresence] = isGone
			}
		}
		events = append(events, c.list(kind, i, r, now)...)
	}
	for _, id := range slices.Sorted(maps.Keys(former)) {
		r := former[id]
		switch {
		case unmatched[id]:
			r.values[attrStock] = "false"
			r.leave(now)
		case partial || !r.removed.IsZero():
		case r.values[attrPresence] == "": // that it went while the data was unknown is no change
			continue
		default:
			if r.missing++; r.missing > kind.tolerated {
				events = append(events, c.remove(kind, &r, now)...)
			}
		}
		c.keep(kind, r, now)
	}
	return events
}

// list keeps the record of an item that is listed, and returns the events since its former record.
func (c *Changes) list(kind *changeKind, i item, r record, now time.Time) []Event {
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
	events := c.count(kind, &r, before, now)
	c.records[i.id] = r
	return events
}

// remove marks the record of an item as removed, unless it is, and returns the events.
func (c *Changes) remove(kind *changeKind, r *record, now time.Time) (events []Event) {
	if r.removed.IsZero() {
		before := r.values
		r.values[attrPresence], r.values[attrClass] = isGone, kind.absent[attrClass]
		events = c.count(kind, r, before, now)
	}
	r.leave(now)
	return events
}

// leave marks an item as removed. That it returns is no change.
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
	for _, text := range slices.Concat([]string{r.id}, r.labels, r.values[:]) {
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

// count counts the changes of an item since its former values, and returns their events.
func (c *Changes) count(kind *changeKind, r *record, before values, now time.Time) (events []Event) {
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
			if c.last == nil {
				c.last = map[*metric.Definition]timestamp{}
			}
			c.last[change.lastOfAny] = timestamp(now.Unix())
		}
		if change.event == "" {
			continue
		}
		keys := r.detail
		if change.to == "" {
			keys = [][2]string{{"before", from}, {"after", to}}
		}
		events = append(events, Event{now, change.event, slices.Concat(r.keys, keys)})
	}
	return events
}

func (c *Changes) addMetrics(b *metric.Builder, kind *changeKind) {
	for d, at := range c.last {
		b.Add(d, float64(at))
	}
	for _, r := range c.records {
		for n, change := range kind.changes {
			tally := r.tallies[n]
			if change.total != nil && cmp.Or(r.values[change.of], kind.absent[change.of]) != "" { // counted from the first known value on
				b.AddCreated(change.total, tally.n, r.since, r.labels...)
			}
			isOver := change.to == isGone && r.removed.IsZero()
			if change.last != nil && tally.at > 0 && !isOver {
				b.Add(change.last, float64(tally.at), r.labels...)
			}
			if change.previous != nil && r.previous != "" {
				number, _ := strconv.ParseFloat(r.previous, 64) // numberText wrote it
				b.Add(change.previous, number, r.labels...)
			}
		}
	}
}
