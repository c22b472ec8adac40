// Package collector turns the resources of the rental API into metrics. One file describes each
// resource: its endpoint, its fields and its metrics. Metrics that follow from several responses or
// resources are pure functions: the time, like the responses, is an argument.
package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// Resource describes one resource of the API: its endpoint, its timing and its metrics. Its flag, its
// part of the configuration and its documentation derive from it.
type Resource struct {
	Name    string // name of the collector: flag, configuration key and label value
	Help    string // names what the collector exports, in a few words
	Path    string // path below the base URL
	Account bool   // whether each account is fetched, with its token

	Timing                    // the default
	MinInterval time.Duration // cache time of the API; 0 if it caches nothing
	MaxRequests int           // largest number of requests of a fetch; 0 means 1

	Metrics []*metric.Definition

	get     getFunc
	changes *changeKind // nil if no items are compared
}

// getFunc fetches a resource from its path once and adds its metrics to the builder, which has the
// label value of the account. Errors that are not those of the API wrap rentalapi.ErrIncomplete or
// rentalapi.ErrTooLarge.
type getFunc func(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error)

// Timing holds the intervals and the maximum age of a resource.
type Timing struct {
	Interval        time.Duration // time from one fetch to the next, start to start, or end to start after a longer fetch; greater than 0
	MaxAge          time.Duration // time for which data is kept after its fetch; at least twice Interval
	SoldOutInterval time.Duration // replaces Interval while an item is sold out; at most Interval; 0 if there is no stock to wait for
}

// Bounds on the samples of one response. A long id is in each sample of its item.
const (
	maxSamples    = 250_000
	maxLabelBytes = 32 << 20 // bytes of all label values
)

// Memory of a sample, and of a byte of its label values, with their part of the published page while the
// next one is encoded.
const (
	bytesOfSample = 400
	bytesOfLabel  = 3
)

// Fetch fetches the resource of one account once; account is empty for a public resource.
func (r *Resource) Fetch(ctx context.Context, api rentalapi.Getter, account string) (Snapshot, error) {
	b := newBuilder(account)
	s, err := r.get(ctx, api, r.Path, b)
	if err != nil {
		return Snapshot{}, err
	}
	s.Metrics = b.Metrics()
	labelBytes := 0
	for _, m := range s.Metrics {
		for _, value := range m.Labels {
			labelBytes += len(value)
		}
	}
	s.Bytes = bytesOfSample*len(s.Metrics) + bytesOfLabel*labelBytes
	if len(s.Metrics) > maxSamples || labelBytes > maxLabelBytes {
		return Snapshot{}, fmt.Errorf("data: more than %d samples or %d bytes of labels: %w", maxSamples, maxLabelBytes, rentalapi.ErrTooLarge)
	}
	return s, nil
}

func newBuilder(account string) *metric.Builder {
	b := &metric.Builder{}
	if account != "" {
		b.ConstLabelValues = []string{account}
	}
	return b
}

// Snapshot is the outcome of one fetch. What it refers to is immutable.
type Snapshot struct {
	Metrics      []*metric.Sample
	Bytes        int // memory of the metrics, about
	Invalid      rentalapi.Invalid
	Data         Data
	Token        rentalapi.Fingerprint // token of the requests
	MadeAt       time.Time             // local time at which the provider made it, or at which it was received if its age is unknown
	MadeAtLatest time.Time             // latest possible value of MadeAt, as ages are truncated to seconds; zero if its age is unknown

	stamp   *timestamp // provider's time at which it was made; nil if it has none
	items   []item     // for Changes.Step, which drops them
	partial bool       // whether items are missing that the provider listed
}

// maxPlausibleAge bounds ages: a longer one means that a clock of the provider is wrong.
const maxPlausibleAge = 365 * 24 * time.Hour

// newSnapshot returns the snapshot of a response, whose age is the header Age.
func newSnapshot(r rentalapi.Response) Snapshot {
	s := Snapshot{Token: r.Token, MadeAt: r.Received.Round(0)} // wall clock: the monotonic one stands still while a machine is suspended
	if r.Age != nil && *r.Age <= maxPlausibleAge {
		s.MadeAt, s.MadeAtLatest = s.MadeAt.Add(-*r.Age), r.Received.Add(-*r.Age)
	}
	return s
}

// setStamp sets the provider's time at which a response was made; nil if it has none. Without header
// Age, the age is the header Date, which rounds by up to a second, less the stamp: the local clock
// may be wrong. A negative age, and one of more than maxAge, is unknown.
func (s *Snapshot) setStamp(r rentalapi.Response, stamp *timestamp, maxAge time.Duration) {
	s.stamp = stamp
	if stamp == nil || r.Date.IsZero() || !s.MadeAtLatest.IsZero() {
		return
	}
	if age := r.Date.Sub(stamp.time()); age >= 0 && age <= maxAge {
		s.MadeAt, s.MadeAtLatest = s.MadeAt.Add(-age), r.Received.Add(-max(0, age-time.Second))
	}
}

// IsOlder returns whether the provider made the snapshot before another one. Caches that
// alternate send such copies.
func (s Snapshot) IsOlder(other Snapshot) bool {
	return s.stamp != nil && other.stamp != nil && *s.stamp < *other.stamp
}

// Data holds the decoded objects for watches, funding and service discovery. Each resource sets its
// own field at most.
type Data struct {
	Account      *Account
	Servers      *ServerData
	Transactions *TransactionData
	Plans        *plansPage
	Locations    *LocationData
}

// AccountData holds the present data of one account.
type AccountData struct {
	Name string // of the account; empty for public data
	Data
	Incomplete []string // names of the collectors whose newest response contradicted itself
}

// Add adds the data of a snapshot.
func (a *AccountData) Add(d Data) {
	a.Account = cmp.Or(d.Account, a.Account)
	a.Servers = cmp.Or(d.Servers, a.Servers)
	a.Transactions = cmp.Or(d.Transactions, a.Transactions)
	a.Plans = cmp.Or(d.Plans, a.Plans)
	a.Locations = cmp.Or(d.Locations, a.Locations)
}

// Resources returns all resources, in the order in which they are documented.
func Resources() []Resource {
	return []Resource{
		plans, locations, osImages, status,
		account, topups, transactions, configurations, sshKeys, servers,
	}
}

// getList returns the get of a list without pages, whose items are at most maxItems. The function add
// maps a response.
func getList[T, M any](maxItems int, add func(b *metric.Builder, page rentalapi.Page[T, M], s *Snapshot)) getFunc {
	return func(ctx context.Context, api rentalapi.Getter, path string, b *metric.Builder) (Snapshot, error) {
		page, err := rentalapi.GetList[T, M](ctx, api, path, nil, maxItems)
		if err != nil {
			return Snapshot{}, err
		}
		s := newSnapshot(page.Response)
		s.Invalid, s.partial = page.Invalid, page.Count > len(page.Items)
		add(b, page, &s)
		return s, nil
	}
}

func addLinks(b *metric.Builder, d *metric.Definition, id string, links ...string) {
	if cmp.Or(links...) != "" {
		b.Add(d, 1, append([]string{id}, links...)...)
	}
}

// checkMeta counts a wrong number in the meta object as an invalid item, if all items are understood.
func (s *Snapshot) checkMeta(field string, number *count, items int) {
	if number != nil && float64(*number) != float64(items) && s.Invalid.Items == 0 {
		s.Invalid.Add("meta", rentalapi.FieldError{Field: field, Problem: "contradicts data"})
	}
}

// Definitions lists the metrics of all resources, and those that follow from several of them, in the
// order of the documentation.
func Definitions() []*metric.Definition {
	var all []*metric.Definition
	for _, r := range Resources() {
		all = append(all, r.Metrics...)
	}
	return slices.Concat(all, watchSet, derivedSet)
}
