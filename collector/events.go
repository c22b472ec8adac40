package collector

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Event is a change from one response to the next.
type Event struct {
	Message string      // one of a fixed number
	Keys    [][2]string // names with values, without the account; nothing in them is secret
}

// eventKind has the messages of one kind of item; an empty one is of no event.
type eventKind struct {
	added, removed, inStock, soldOut, priceChanged, stateChanged string

	addedAgain bool // an item that returns is added again, not only after rememberFor
}

var (
	planEvents          = &eventKind{added: "plan added", removed: "plan removed", inStock: "plan in stock", soldOut: "plan sold out", priceChanged: "plan price changed"}
	configurationEvents = &eventKind{inStock: "configuration in stock", soldOut: "configuration sold out"}
	componentEvents     = &eventKind{stateChanged: "component state changed"}
	serverEvents        = &eventKind{added: "server added", removed: "server removed", stateChanged: "server status changed", addedAgain: true}
	topupEvents         = &eventKind{stateChanged: "top-up status changed"}
)

// item is what events compare of an item of a response. A value that is not known is taken
// to be the last known one.
type item struct {
	kind   *eventKind
	id     string      // unique in the response
	keys   [][2]string // of all its events
	detail [][2]string // more keys, of those that show no value before
	stock  *bool
	price  *price
	state  state

	listed  time.Time // when it was last in a response
	removed bool      // a response without it was complete
}

func (i item) event(message string, keys ...[2]string) Event {
	return Event{message, slices.Concat(i.keys, keys)}
}

// changes returns the events that lead from an earlier item to this one.
func (i item) changes(before item) (events []Event) {
	if i.stock != nil && before.stock != nil && *i.stock != *before.stock {
		message := i.kind.soldOut
		if *i.stock {
			message = i.kind.inStock
		}
		events = append(events, i.event(message, i.detail...))
	}
	if was, is := numberText(before.price), numberText(i.price); was != is && was != "" {
		events = append(events, i.event(i.kind.priceChanged, [2]string{"before", was}, [2]string{"after", is}))
	}
	if before.state != "" && before.state != i.state {
		events = append(events, i.event(i.kind.stateChanged, [2]string{"before", string(before.state)}, [2]string{"after", string(i.state)}))
	}
	return events
}

// itemHistory has the items of the responses of the last hour by id. It is immutable, and nil
// before the first response.
type itemHistory map[string]item

// step returns the history after a response with items, and the events since the one before.
// If the response is partial, a missing item may still be there.
func (h itemHistory) step(items []item, partial bool, now time.Time) (next itemHistory, events []Event) {
	next = make(itemHistory, len(items))
	for _, i := range items {
		if _, twice := next[i.id]; twice { // it moved on between the requests for two pages
			continue
		}
		before, known := h[i.id]
		if before.removed && (i.kind.addedAgain || now.Sub(before.listed) >= rememberFor) {
			before, known = item{}, false
		}
		i.stock, i.price, i.state = cmp.Or(i.stock, before.stock), cmp.Or(i.price, before.price), cmp.Or(i.state, before.state)
		i.listed = now
		next[i.id] = i
		switch {
		case known:
			events = append(events, i.changes(before)...)
		case h != nil && i.kind.added != "":
			events = append(events, i.event(i.kind.added, i.detail...))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h)) {
		i := h[id]
		if _, listed := next[id]; listed {
			continue
		}
		if i.kind.removed != "" && !i.removed && !partial {
			events = append(events, i.event(i.kind.removed, i.detail...))
		}
		i.removed = i.removed || !partial
		if now.Sub(i.listed) < rememberFor {
			next[id] = i
		}
	}
	return next, events
}

// missingComponents returns the components that an earlier response had, and the last one lacks.
func (h itemHistory) missingComponents() (missing []Component) {
	for _, i := range h {
		if i.kind == componentEvents && i.removed {
			missing = append(missing, Component{i.keys[0][1], i.keys[1][1]})
		}
	}
	return missing
}

// numberText returns a number as text; empty if it is not known.
func numberText[T ~float64](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*n), 'f', -1, 64)
}
