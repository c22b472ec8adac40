// Package collector turns the resources of the rental API into metrics. One file describes
// each resource: its endpoint, its fields and its metrics. What follows from several
// resources is a function of what they say. Nothing here runs by itself: the time, like the
// response, is an argument.
package collector

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// Resource describes one resource of the API: its endpoint, how often it is fetched,
// and its metrics. Its flag, its part of the configuration and its documentation
// derive from it.
type Resource struct {
	Name    string // of the collector: flag, configuration key and label value
	Help    string // what it exports, in a few words
	Path    string // path below the base URL
	Account bool   // fetched with the token of each account

	Interval    time.Duration // default
	MaxAge      time.Duration // default
	MinInterval time.Duration // how long the API itself caches; 0 if it does not
	// SoldOutInterval is the default of the interval while an item is sold out; 0 if there is
	// no such interval.
	SoldOutInterval time.Duration

	MaxRequests int // of a fetch, usually; 0 means 1, which is the least

	Metrics []*metric.Definition

	// get fetches the resource once and adds its metrics to the builder, which has the label
	// values of the account already. An error of the getter is returned as it is; others wrap
	// rentalapi.ErrIncomplete or rentalapi.ErrTooLarge if they mean that.
	get   getFunc
	stock *stockMetrics // of the items; nil if they have no stock
}

type getFunc func(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (Snapshot, error)

// Fetch fetches the resource of an account once, or the public one if that is empty. The
// snapshot builds on the last one that was used, which is empty before the first.
func (r Resource) Fetch(ctx context.Context, api rentalapi.Getter, account string, last Snapshot) (Snapshot, error) {
	b := &metric.Builder{}
	if account != "" {
		b.ConstLabelValues = []string{account}
	}
	s, err := r.get(ctx, api, b)
	if err != nil {
		return Snapshot{}, err
	}
	if r.stock != nil {
		r.stock.apply(b, &s, last.stock)
	}
	known := last.history
	if s.response.Token != last.response.Token { // it may be that of another provider account
		known = nil
	}
	s.history, s.Events = known.step(s.items, s.partial, s.response.Received)
	s.Metrics, s.items, s.Missing = b.Metrics(), nil, s.history.missingComponents()
	return s, nil
}

// Snapshot is what one fetch gave. It is immutable.
type Snapshot struct {
	Metrics []prometheus.Metric // of the builder
	Invalid rentalapi.Invalid
	Data    Data
	Age     Age
	Events  []Event       // since the last snapshot; none if there is none
	Missing []Component   // that the response lacks, although they were there within the last hour
	AtLeast time.Duration // minimum time until the next fetch; 0: none
	SoldOut bool          // whether an item was sold out when its stock was last known
	// producedAt is when the provider made the response, by its own account; nil if it
	// does not say.
	producedAt *timestamp
	response   rentalapi.Response // the last one
	items      []item             // for the events
	partial    bool               // whether items are missing that the provider listed
	stock      stockHistory
	history    itemHistory
}

// IsOlder returns whether the provider made the snapshot before another one. Caches that
// alternate send such copies.
func (s Snapshot) IsOlder(other Snapshot) bool {
	return s.producedAt != nil && other.producedAt != nil && *s.producedAt < *other.producedAt
}

// Age is how old a response was when it was received.
type Age struct {
	Age *time.Duration // nil if it is not known
	// ProducedBy is when the provider made the response at the latest, by the local
	// clock: ages are truncated to seconds. It is zero if that is not known.
	ProducedBy time.Time
}

// maxPlausibleAge bounds ages: beyond it, a clock of the provider is wrong.
const maxPlausibleAge = 365 * 24 * time.Hour

// newAge takes the age from the header Age, or else compares the time in the response
// with the header Date; never with the local clock, which may be wrong. An age that is
// negative or longer than maxPlausibleAge is not known.
func newAge(r rentalapi.Response, producedAt *timestamp) Age {
	if r.Age != nil && *r.Age <= maxPlausibleAge {
		return Age{r.Age, r.Received.Add(-*r.Age)}
	}
	if producedAt == nil || r.Date.IsZero() {
		return Age{}
	}
	age := r.Date.Sub(producedAt.time())
	if age < 0 || age > maxPlausibleAge {
		return Age{}
	}
	return Age{&age, r.Received.Add(min(0, time.Second-age))}
}

// Data are what one snapshot tells to those who need more than its metrics. Each
// resource sets its own fields; all others are nil.
type Data struct {
	Account   *Account
	Servers   *ServerData
	Plans     *plansPage
	Locations *LocationData
}

// Known is what is known of one account, or of the public data if it has no name.
type Known struct {
	Account    string
	Data       Data      // those that have not expired
	Until      time.Time // when the first of them expires; zero if there are none
	Incomplete []string  // names of the collectors whose newest response contradicted itself
}

// Add adds the data of a snapshot that expires at until.
func (k *Known) Add(d Data, until time.Time) {
	if d == (Data{}) {
		return
	}
	k.Until = metric.Earlier(k.Until, until)
	k.Data.Account = cmp.Or(d.Account, k.Data.Account)
	k.Data.Servers = cmp.Or(d.Servers, k.Data.Servers)
	k.Data.Plans = cmp.Or(d.Plans, k.Data.Plans)
	k.Data.Locations = cmp.Or(d.Locations, k.Data.Locations)
}

// Resources returns all resources, in the order in which they are documented.
func Resources() []Resource {
	return []Resource{
		plans(), locations(), osImages(), status(),
		account(), topups(), transactions(), configurations(), sshKeys(), servers(),
	}
}

// maxItems bounds a list. The longest that the provider documents has 20 entries.
const maxItems = 2_000

// list returns the function get of a list without pages. The function item
// adds the metrics of one item. The function whole adds what is exported about the list as a
// whole, and sets its data and when it was produced. M is the meta object.
func list[T, M any](l rentalapi.List[T], item func(*metric.Builder, *T), whole func(*metric.Builder, rentalapi.Page[T, M], *Snapshot)) getFunc {
	return func(ctx context.Context, api rentalapi.Getter, b *metric.Builder) (Snapshot, error) {
		page, err := rentalapi.GetList[T, M](ctx, api, l)
		if err != nil {
			return Snapshot{}, err
		}
		for _, t := range page.Items {
			item(b, t)
		}
		s := Snapshot{Invalid: page.Invalid, response: page.Response, partial: page.Count > len(page.Items)}
		whole(b, page, &s)
		s.Age = newAge(page.Response, s.producedAt)
		return s, nil
	}
}

// addLinks adds the links of an item unless none of them is known.
func addLinks(b *metric.Builder, d *metric.Definition, id string, links ...string) {
	if cmp.Or(links...) != "" {
		b.Add(d, 1, append([]string{id}, links...)...)
	}
}

// checkMeta counts a number in the meta object that is not that of the items, if all are
// understood.
func (s *Snapshot) checkMeta(field string, number *count, items int) {
	if number != nil && float64(*number) != float64(items) && s.Invalid.Items == 0 {
		s.Invalid.Add("meta", rentalapi.FieldError{Field: field, Problem: "contradicts data"})
	}
}

// Definitions lists the metrics of all resources, and those that follow from several of
// them, in the order of the documentation.
func Definitions() []*metric.Definition {
	var all []*metric.Definition
	for _, r := range Resources() {
		all = append(all, r.Metrics...)
	}
	return slices.Concat(all, WatchDefinitions(), FundingDefinitions())
}

// Sample is a published sample, for pages.
type Sample = metric.Sample
