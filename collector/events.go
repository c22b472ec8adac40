package collector

import (
	"slices"
	"strconv"
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
	replaced   bool // an item of another state is another one with the same id
}

var (
	planEvents          = &eventKind{added: "plan added", removed: "plan removed", inStock: "plan in stock", soldOut: "plan sold out", priceChanged: "plan price changed"}
	configurationEvents = &eventKind{inStock: "configuration in stock", soldOut: "configuration sold out"}
	componentEvents     = &eventKind{stateChanged: "component state changed"}
	serverEvents        = &eventKind{added: "server added", removed: "server removed", stateChanged: "server status changed", addedAgain: true}
	sshKeyEvents        = &eventKind{added: "ssh key added", removed: "ssh key removed", addedAgain: true, replaced: true}
	topupEvents         = &eventKind{stateChanged: "top-up status changed"}
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

// numberText returns a number as text; empty if it is not known.
func numberText[T ~float64](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*n), 'f', -1, 64)
}
