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

	dto "github.com/prometheus/client_model/go"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// The rest between two publications is restFactor times as long as the work, so that publishing
// takes a tenth of a processor; from publishInterval to maxRest. A rest that an expiry ends is at
// least as long as the work.
const (
	restFactor      = 9
	publishInterval = 100 * time.Millisecond
	maxRest         = 3 * time.Second
)

// maxLate is the longest time for which expired metrics are served, if the publisher is late.
const maxLate = time.Second

// variantTTL is the time for which a variant is encoded after a request for it.
const variantTTL = 10 * time.Minute

// Collect returns the present samples, and the time at which they change by themselves, which is after
// now; zero if they do not. One goroutine at a time calls it.
type Collect func(now time.Time) (samples []*metric.Sample, expires time.Time)

// Publisher keeps metrics encoded. As a prometheus.Gatherer it returns what is published.
type Publisher struct {
	definitions []*metric.Definition
	collect     Collect
	changed     atomic.Bool
	page        atomic.Pointer[page]

	publishing sync.Mutex // held while Publish works
	encoding   sync.Mutex // held while a page is encoded: one at a time, to bound memory
	lastUsed   sync.Map   // maps a variant to the time.Time of its last request
}

// NewPublisher returns a publisher of the families of definitions, which are all that collect may return.
// Nothing is published yet.
func NewPublisher(definitions []*metric.Definition, collect Collect) *Publisher {
	p := &Publisher{definitions: definitions, collect: collect}
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
			p.encode(fresh, v.(variant))
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

// encode returns a page in a variant. The first call encodes it, others wait.
func (p *Publisher) encode(of *page, v variant) text {
	encoded, ok := of.encoded.Load(v)
	if !ok {
		encoded, _ = of.encoded.LoadOrStore(v, sync.OnceValue(func() text {
			return p.encodeFamilies(of, v, func(string) bool { return false })
		}))
	}
	return encoded.(func() text)()
}

// encodeFamilies encodes a page without unwanted families.
func (p *Publisher) encodeFamilies(of *page, v variant, unwanted func(family string) bool) text {
	p.encoding.Lock()
	defer p.encoding.Unlock()
	return text{err: of.err}.encode(pageEncoders, v, of.messages(v, unwanted), "")
}

// Gather implements prometheus.Gatherer.
func (p *Publisher) Gather() (families []*dto.MetricFamily, err error) {
	current := p.current()
	for _, f := range current.families {
		families = append(families, f.definition.Family(f.samples))
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
	for _, f := range p.current().families {
		all[strings.TrimPrefix(f.definition.Name, metric.Namespace)] = f.samples
	}
	return all
}
