package collector

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// History holds the changes from one response of a collector to the next. It is immutable. The
// zero value is that before the first response.
type History struct {
	Metrics []*metric.Sample // of the changes so far
	Events  []Event          // of the last response
	Missing []Component      // that the last response lacks, although they were there within the last hour
	SoldOut bool             // whether an item was sold out when its stock was last known

	token   rentalapi.Fingerprint // of the last response
	known   bool                  // whether the items of the last step are known; one that is new then is added
	records map[string]record     // by the id of the item
	changed *timestamp            // when an item was last added or removed; nil until then
}

// Event is a change from one response to the next.
type Event struct {
	Message string      // one of a fixed number
	Keys    [][2]string // names with values, without the account; nothing in them is secret
}

// eventKind has the messages of one kind of item; an empty one is of no event.
type eventKind struct {
	added, removed, inStock, soldOut, priceChanged string
	stateChanged                                   string // if empty, an item of another state is another one

	addedAgain     bool // an item that returns is added again, not only after rememberFor
	addedIsRestock bool // an item that is added in stock came in stock
}

var (
	planEvents          = &eventKind{added: "plan added", removed: "plan removed", inStock: "plan in stock", soldOut: "plan sold out", priceChanged: "plan price changed"}
	configurationEvents = &eventKind{inStock: "configuration in stock", soldOut: "configuration sold out"}
	componentEvents     = &eventKind{stateChanged: "component state changed"}
	serverEvents        = &eventKind{added: "server added", removed: "server removed", stateChanged: "server status changed", addedAgain: true}
	sshKeyEvents        = &eventKind{added: "ssh key added", removed: "ssh key removed", addedAgain: true}
	topupEvents         = &eventKind{stateChanged: "top-up status changed"}
	watchEvents         = &eventKind{inStock: "watch hit", addedIsRestock: true}
)

// item is what a history compares of an item of a response. A value that is not known is
// taken to be the last known one.
type item struct {
	kind   *eventKind
	id     string      // unique in the response
	labels []string    // of its metrics, without the account
	keys   [][2]string // of all its events
	detail [][2]string // more keys, of those that show no value before
	stock  *bool
	price  *price
	state  state
}

// record is an item of an earlier response.
type record struct {
	item
	since, listed time.Time // when it was first, and last, in a response
	removed       bool      // a response without it was complete

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

// Step returns the history after a snapshot of a resource that is shown from now on. Earlier
// responses to another token do not count: they may be of another provider account.
func (h History) Step(r *Resource, account string, s Snapshot, now time.Time) History {
	if s.Token != h.token {
		h = History{}
	}
	next := h.step(s.items, s.partial, now)
	next.token = s.Token
	next.addMetrics(newBuilder(account), r, s.items)
	return next
}

// step returns the history after all items are known, or some if they are partial.
func (h History) step(items []item, partial bool, now time.Time) History {
	next := History{known: true, changed: h.changed, records: make(map[string]record, len(items))}
	for _, i := range items {
		if _, twice := next.records[i.id]; twice { // it moved on between the requests for two pages
			continue
		}
		r, known := h.records[i.id]
		if !known || r.removed && (i.kind.addedAgain || now.Sub(r.listed) >= rememberFor) {
			r = record{since: now}
			if h.known {
				next.cameOrWent(i.kind.added, i, now)
			}
			if h.known && i.kind.addedIsRestock {
				r.stock = new(bool)
			}
		}
		next.list(i, r, now)
	}
	for _, id := range slices.Sorted(maps.Keys(h.records)) {
		if _, listed := next.records[id]; !listed {
			next.keep(id, h.records[id], partial, now)
		}
	}
	return next
}

// forgetStock returns the history after the stock of all items became unknown: its next value is
// no change, and an item that is new then is not added.
func (h History) forgetStock() History {
	next := History{token: h.token, changed: h.changed, records: make(map[string]record, len(h.records))}
	for id, r := range h.records {
		r.stock = nil
		next.records[id] = r
	}
	return next
}

// list keeps the record of an item that is listed, and adds the events that lead from its former
// record to it.
func (h *History) list(i item, r record, now time.Time) {
	i.stock, i.price, i.state = cmp.Or(i.stock, r.stock), cmp.Or(i.price, r.price), cmp.Or(i.state, r.state)
	at := timestamp(now.Unix())
	switch {
	case r.stock == nil || *r.stock == *i.stock:
	case *i.stock:
		r.restocks, r.lastRestock = r.restocks+1, &at
		h.add(i.kind.inStock, i, i.detail...)
	default:
		r.sellouts, r.lastSellout = r.sellouts+1, &at
		h.add(i.kind.soldOut, i, i.detail...)
	}
	if r.price != nil && *r.price != *i.price {
		h.add(i.kind.priceChanged, i, [2]string{"before", numberText(r.price)}, [2]string{"after", numberText(i.price)})
	}
	switch {
	case r.state == "" || r.state == i.state:
	case i.kind.stateChanged != "":
		h.add(i.kind.stateChanged, i, [2]string{"before", string(r.state)}, [2]string{"after", string(i.state)})
	default:
		h.cameOrWent(i.kind.removed, r.item, now)
		h.cameOrWent(i.kind.added, i, now)
	}
	h.SoldOut = h.SoldOut || i.stock != nil && !*i.stock
	r.item, r.listed, r.removed = i, now, false
	h.records[i.id] = r
}

// keep keeps the record of an item that is not listed, unless that is too long ago. If the
// response is partial, the item may still be there.
func (h *History) keep(id string, r record, partial bool, now time.Time) {
	if !r.removed && !partial {
		r.removed = true
		h.cameOrWent(r.kind.removed, r.item, now)
	}
	if now.Sub(r.listed) >= rememberFor || len(h.records) >= maxRemembered {
		return
	}
	h.records[id] = r
	if r.kind == componentEvents && r.removed {
		h.Missing = append(h.Missing, Component{r.labels[0], r.labels[1]})
	}
}

// cameOrWent adds the event of an item that came or went.
func (h *History) cameOrWent(message string, i item, now time.Time) {
	at := timestamp(now.Unix())
	h.changed = &at
	h.add(message, i, i.detail...)
}

// add adds an event, unless its message is empty.
func (h *History) add(message string, i item, keys ...[2]string) {
	if message != "" {
		h.Events = append(h.Events, Event{message, slices.Concat(i.keys, keys)})
	}
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
		b.AddCreated(r.stock.restocks, is.restocks, is.since, i.labels...)
		b.AddCreated(r.stock.sellouts, is.sellouts, is.since, i.labels...)
		metric.AddOptional(b, r.stock.lastRestock, is.lastRestock, i.labels...)
		metric.AddOptional(b, r.stock.lastSellout, is.lastSellout, i.labels...)
	}
	h.Metrics = b.Metrics()
}
