package collector

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
	"server_rental_exporter/internal/rentalapi"
)

// Resource describes one resource of the API: its endpoint, how often it is fetched,
// and its metrics. Its flag, its part of the configuration and its documentation
// derive from it.
type Resource struct {
	Name     string // of the collector: flag, configuration key and label value
	Help     string // what it exports, in a few words
	Endpoint string // path below the base URL
	Account  bool   // fetched with the token of each account

	Interval    time.Duration // default
	MaxAge      time.Duration // default
	MinInterval time.Duration // how long the API itself caches; 0 where it does not

	Requests    int // the least number of requests of a refresh
	MaxRequests int // the usual most; 0 means the same

	Metrics []*metric.Definition

	// newFetch returns the fetch of one scope, with whatever it remembers.
	newFetch func() fetch
}

// fetch gets the resource once and adds its metrics to the builder, which has the
// label values of the scope already.
type fetch func(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error)

// snapshot is one good answer as metrics. It is immutable.
type snapshot struct {
	metrics []prometheus.Metric
	invalid rentalapi.Invalid
	facts   facts
	age     answerAge
}

// facts are what derived metrics and pages read of a snapshot. Each resource sets its
// own fields.
type facts struct {
	account      *accountFacts
	servers      *serverList
	plans        []*plan              // in the provider's order
	plansUnnamed int                  // items of the answer without a usable id
	locations    map[string]*location // by id
	producedAt   *timestamp           // when the provider made the answer, as it says in the answer
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

// list fetches a list without pages. T is the item on the wire, M the meta object.
type list[T, M any] struct {
	rentalapi.List[T]
	itemMetrics func(*metric.Builder, *T)
	// listMetrics adds what is exported about the list as a whole, and returns its
	// facts. It may be nil.
	listMetrics func(*metric.Builder, rentalapi.Page[T, M]) facts
}

func (l list[T, M]) fetch(ctx context.Context, api *rentalapi.Scope, b *metric.Builder) (snapshot, error) {
	page, err := rentalapi.GetList[T, M](ctx, api, l.List)
	if err != nil {
		return snapshot{}, err
	}
	for _, item := range page.Items {
		l.itemMetrics(b, item)
	}
	s := snapshot{invalid: page.Invalid}
	if l.listMetrics != nil {
		s.facts = l.listMetrics(b, page)
	}
	s.age = newAnswerAge(page.Answer, s.facts.producedAt)
	return s.build(b)
}

// build completes a snapshot with the metrics that were added to the builder.
func (s snapshot) build(b *metric.Builder) (snapshot, error) {
	if err := b.Err(); err != nil {
		return snapshot{}, err
	}
	s.metrics = b.Metrics()
	return s, nil
}

// countOf is meta.count, or the number of items where it is absent.
func countOf(metaCount *count, items int) float64 {
	if metaCount == nil {
		return float64(items)
	}
	return float64(*metaCount)
}
