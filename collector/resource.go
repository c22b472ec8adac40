package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// Resource describes one resource of the API: what is asked, how often, and what
// it becomes. Its flag, its part of the configuration and its documentation
// follow from it.
type Resource struct {
	Name     string // of the collector: flag, configuration key and label value
	Help     string // what it shows, in a few words
	Endpoint string // path below the base URL
	Account  bool   // asked with the token of each account

	Interval    time.Duration // default
	MaxAge      time.Duration // default
	MinInterval time.Duration // how long the API itself caches; 0 where it does not

	Requests    int // requests that a refresh makes at least
	MaxRequests int // and usually at most

	Metrics []*metric.Definition

	// open returns the fetch of one scope, with whatever it remembers.
	open func() fetch
}

// fetch asks for the resource once and builds what is shown of it. The builder
// has the labels of the scope already.
type fetch func(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error)

// snapshot is one good answer, ready to be shown. It does not change.
type snapshot struct {
	metrics []prometheus.Metric
	invalid faults
	data    any // what other parts read of it: see balance and servers
}

var (
	errNoID = errors.New("id: missing")
	errSeen = errors.New("id: already seen")
)

// faults are the items of an answer that were left out.
type faults struct {
	count int
	first error
}

func (f *faults) add(err error) {
	if err == nil {
		return
	}
	f.count++
	if f.first == nil {
		f.first = err
	}
}

func (f *faults) merge(other faults) {
	if f.first == nil {
		f.first = other.first
	}
	f.count += other.count
}

// Resources returns all resources, in the order in which they are documented.
func Resources() []Resource {
	return []Resource{
		plans(), locations(), osImages(), status(),
		account(), topups(), transactions(), configurations(), sshKeys(), servers(),
	}
}

// mostItems bounds a list. The longest that the document names has 20 entries.
const mostItems = 2_000

// list fetches a list without pages. T is the item on the wire, M the meta object.
type list[T, M any] struct {
	endpoint string
	most     int // items; more are an error
	id       func(*T) string
	item     func(*metric.Builder, *T)
	// rest adds what is shown of the list as a whole, from the items that were
	// shown; what it returns is the snapshot's data. May be nil.
	rest func(b *metric.Builder, meta *M, items []*T) any
}

func (l list[T, M]) fetch(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error) {
	r := newReader(l.id)
	var s snapshot
	err := api.List(ctx, l.endpoint, l.most, r.read, func(raw json.RawMessage) error {
		data, err := l.show(b, r, raw)
		s = snapshot{metrics: b.Metrics(), invalid: r.invalid, data: data}
		return errors.Join(err, tooLarge(b))
	})
	if err != nil {
		return snapshot{}, err
	}
	return s, nil
}

// show adds the items that were read, and what is shown of the list as a whole.
func (l list[T, M]) show(b *metric.Builder, r *reader[T], raw json.RawMessage) (data any, err error) {
	var meta M
	if len(raw) > 0 {
		if err := decode(raw, &meta); err != nil {
			r.invalid.add(fmt.Errorf("meta: %w", err))
			meta = *new(M)
		}
	}
	shown := r.items[:0]
	for _, item := range r.items {
		if err := b.Item(func() { l.item(b, item) }); err != nil {
			r.invalid.add(err)
			continue
		}
		shown = append(shown, item)
	}
	if l.rest == nil {
		return nil, nil
	}
	err = b.Item(func() { data = l.rest(b, &meta, shown) })
	return data, err
}

// tooLarge is the error of an answer that made more than may be shown.
func tooLarge(b *metric.Builder) error {
	if !b.Full() {
		return nil
	}
	return fmt.Errorf("data: more than %d samples or %d MiB of them: %w", metric.MaxSamples, metric.MaxBytes>>20, rentalapi.ErrTooLarge)
}

// reader decodes items one by one and leaves out those that cannot be understood.
type reader[T any] struct {
	id      func(*T) string
	check   func(*T) error // what else must hold of an item; may be nil
	seen    map[string]bool
	items   []*T
	invalid faults
}

func newReader[T any](id func(*T) string) *reader[T] {
	return &reader[T]{id: id, seen: map[string]bool{}}
}

// read takes one item in; it does not keep raw.
func (r *reader[T]) read(raw json.RawMessage) {
	item := new(T)
	err := decode(raw, item)
	id := r.id(item)
	switch {
	case err != nil:
	case id == "":
		err = errNoID
	case r.seen[id]:
		err = errSeen
	case r.check != nil:
		err = r.check(item)
	}
	if err != nil {
		r.invalid.add(err)
		return
	}
	r.seen[id] = true
	r.items = append(r.items, item)
}

// object fetches a resource that is a single object. What cannot be shown is an
// error, so that the last good answer stays.
func object[T any](endpoint string, show func(b *metric.Builder, v *T, invalid *faults) (data any, err error)) fetch {
	return func(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error) {
		var s snapshot
		err := api.Object(ctx, endpoint, func(raw json.RawMessage) error {
			var v T
			if err := decode(raw, &v); err != nil {
				return err
			}
			var unknown error
			err := b.Item(func() { s.data, unknown = show(b, &v, &s.invalid) })
			return errors.Join(unknown, err, tooLarge(b))
		})
		if err != nil {
			return snapshot{}, err
		}
		s.metrics = b.Metrics()
		return s, nil
	}
}
