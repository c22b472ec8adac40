// Package exposition serves metrics that change rarely at the cost of copying their bytes.
//
// A Publisher collects all samples when some changed, encodes them as one page, once for each variant
// that was requested lately, and swaps one pointer to the result. A scrape continues the text of the page,
// its checksum and its size with the metrics of the process, which it encodes itself.
package exposition

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/flate"
	dto "github.com/prometheus/client_model/go"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// Publishing takes a tenth of a processor. A rest that an expiry ends is at least as long as the work before it.
const (
	restFactor      = 9                      // rest between two publications, in times of the work; from publishInterval
	publishInterval = 100 * time.Millisecond // to maxRest
	maxRest         = 3 * time.Second
	maxLate         = time.Second      // for which expired metrics are served, if the publisher is late
	variantTTL      = 10 * time.Minute // for which a variant is encoded after a request for it
)

// Publisher keeps metrics encoded. As a prometheus.Gatherer it returns what is published.
type Publisher struct {
	definitions []*metric.Definition
	collect     func(now time.Time) (samples []*metric.Sample, expires time.Time)
	changed     atomic.Bool
	page        atomic.Pointer[page]

	publishing     sync.Mutex // held while Publish works
	pages, scrapes *encoder   // for many scrapes, and for one
	lastUsed       sync.Map   // maps a variant to the time.Time of its last request
}

// NewPublisher returns a publisher of the families of definitions. Nothing is published yet. One goroutine at a
// time calls collect, which returns the present samples, all of these families, and the time at which they change
// by themselves, which is after now; zero if they do not.
func NewPublisher(definitions []*metric.Definition, collect func(now time.Time) (samples []*metric.Sample, expires time.Time)) *Publisher {
	p := &Publisher{definitions: definitions, collect: collect, pages: newEncoder(6), scrapes: newEncoder(flate.BestSpeed)}
	p.page.Store(&page{})
	p.Changed()
	return p
}

// Changed asks for a publication. It does not block.
func (p *Publisher) Changed() { p.changed.Store(true) }

// Run publishes what changed, until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	for {
		began := time.Now()
		p.Publish()
		work := time.Since(began)
		rest := min(restFactor*work, maxRest)
		if expires := p.page.Load().expires; !expires.IsZero() {
			rest = min(rest, max(expires.Sub(time.Now().Round(0)), work))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(rest, publishInterval)):
		}
	}
}

// Publish collects and publishes all metrics, if something changed or expired. When it returns, earlier
// changes are served.
func (p *Publisher) Publish() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	now := time.Now().Round(0) // wall clock, which may step
	if !p.changed.Swap(false) && !p.page.Load().isStale(now, 0) {
		return
	}
	samples, expires := p.collect(now)
	fresh := newPage(samples, p.definitions, now, expires)
	for v, at := range p.lastUsed.Range {
		if now.Sub(at.(time.Time)) <= variantTTL {
			p.encode(fresh, v.(variant), nil)
		}
	}
	p.page.Store(fresh)
}

// current returns the page that is published. If the publisher is late, that is published now.
func (p *Publisher) current() *page {
	if p.page.Load().isStale(time.Now().Round(0), maxLate) {
		p.Publish()
	}
	return p.page.Load()
}

// encode returns the families of a page with some names, or all, in a variant. All are encoded once: other
// calls wait for the first one.
func (p *Publisher) encode(of *page, v variant, names []string) text {
	encode := sync.OnceValue(func() text { return p.pages.encode(text{err: of.err}, v, of.messages(v, names), "") })
	if len(names) > 0 {
		return encode()
	}
	first, _ := of.encoded.LoadOrStore(v, encode)
	return first.(func() text)()
}

// Gather implements prometheus.Gatherer.
func (p *Publisher) Gather() (families []*dto.MetricFamily, err error) {
	current := p.current()
	for _, samples := range current.families {
		families = append(families, samples[0].Definition.Family(samples))
	}
	return families, current.err
}

// Samples returns the published samples, by name without namespace, sorted by labels. The map has
// a key for every metric, also for one without samples.
func (p *Publisher) Samples() map[string][]*metric.Sample {
	all := map[string][]*metric.Sample{}
	for _, d := range p.definitions {
		all[strings.TrimPrefix(d.Name, metric.Namespace)] = nil
	}
	for _, samples := range p.current().families {
		all[strings.TrimPrefix(samples[0].Definition.Name, metric.Namespace)] = samples
	}
	return all
}
