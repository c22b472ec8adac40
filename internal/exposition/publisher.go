// Package exposition serves metrics that change rarely at the cost of copying their
// bytes.
//
// Metrics are published in groups that change together. A Publisher encodes and
// compresses the groups that changed, once for each variant that was requested in the
// last minutes, and swaps one pointer to the result. A scrape loads it, joins the encoded
// families and adds the metrics of requests and of the process, which it encodes itself. To
// be joined, compressed families are flushed to a byte and their checksums combined into those
// of one gzip member: several members are read by few clients.
package exposition

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

// The time between two publications is restFactor times as long as the work, so that it takes a
// tenth of a processor, from publishInterval up to maxRest. If something expires earlier, the time
// is as long as the work at least.
const (
	restFactor      = 9
	publishInterval = 100 * time.Millisecond
	maxRest         = 3 * time.Second
)

// maxLate is for how long what has expired is served, if the publisher does not come round.
const maxLate = time.Second

// variantTTL is for how long a variant is encoded after it was asked for.
const variantTTL = 10 * time.Minute

// Group is a set of metric families that are published together.
type Group struct {
	// Definitions are all families that Collect may return. No other group has them.
	Definitions []*metric.Definition
	// Collect returns the present samples, and when they change by the passing of time; zero
	// if they do not. It is called by one goroutine at a time.
	Collect func(now time.Time) (samples []*metric.Sample, expires time.Time)

	changed atomic.Bool

	published // what was collected last
}

// published are the families of a group. It is immutable.
type published struct {
	families []*family
	expires  time.Time // by the wall clock; zero if they do not expire
}

// Changed marks the group for the next publication. It does not block.
func (g *Group) Changed() { g.changed.Store(true) }

// Publisher keeps groups of metrics encoded. As a prometheus.Gatherer it returns what is
// published.
type Publisher struct {
	groups    []*Group
	published atomic.Pointer[[]published] // in the order of groups; immutable

	publishing sync.Mutex // held while Publish works
	at         time.Time  // of the last publication, by the wall clock
	encoding   sync.Mutex // held while a family is encoded: one at a time, to bound memory
	lastUsed   sync.Map   // time.Time by variant
}

// NewPublisher returns a publisher of groups. Nothing is published yet.
func NewPublisher(groups ...*Group) *Publisher {
	p := &Publisher{groups: groups}
	p.published.Store(&[]published{})
	for _, g := range groups {
		g.Changed()
	}
	return p
}

// Run publishes what changed, until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	for {
		began := time.Now()
		p.Publish()
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.rest(time.Since(began))):
		}
	}
}

// rest returns the time until the next publication, after one that took some time.
func (p *Publisher) rest(work time.Duration) time.Duration {
	now, rest := time.Now().Round(0), min(restFactor*work, maxRest)
	for _, g := range *p.published.Load() {
		if !g.expires.IsZero() {
			rest = min(rest, max(g.expires.Sub(now), work))
		}
	}
	return max(rest, publishInterval)
}

// Publish publishes the groups that changed or expired, all as they are at one moment. Earlier
// changes are served when it returns. If the wall clock was set back, every group may have expired.
func (p *Publisher) Publish() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	now := time.Now().Round(0) // by the wall clock, which may step
	setBack := now.Before(p.at)
	p.at = now
	var fresh []*family
	all := make([]published, len(p.groups))
	for i, g := range p.groups {
		if g.changed.Swap(false) || g.expired(now) || setBack {
			var samples []*metric.Sample
			samples, g.expires = g.Collect(now)
			g.families = newFamilies(samples, g.Definitions)
			fresh = append(fresh, g.families...)
		}
		all[i] = g.published
	}
	for v, at := range p.lastUsed.Range {
		for _, f := range fresh {
			if now.Sub(at.(time.Time)) <= variantTTL {
				p.encode(f, v.(variant))
			}
		}
	}
	p.published.Store(&all)
}

// expired returns whether the families have expired at a time.
func (p published) expired(now time.Time) bool {
	return !p.expires.IsZero() && !now.Before(p.expires)
}

// current returns the families that are published and have not expired.
func (p *Publisher) current() iter.Seq[*family] {
	now := time.Now().Round(0)
	return func(yield func(*family) bool) {
		for _, g := range *p.published.Load() {
			if g.expired(now.Add(-maxLate)) {
				continue
			}
			for _, f := range g.families {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// encode returns a family in a variant. The first call encodes it, others wait.
func (p *Publisher) encode(f *family, v variant) part {
	encoded, ok := f.encoded.Load(v)
	if ok {
		return encoded.(part)
	}
	p.encoding.Lock()
	defer p.encoding.Unlock()
	if encoded, ok = f.encoded.Load(v); !ok { // nor by another goroutine meanwhile
		encoded = encode(familyEncoders, v, f.messages(v), "")
		f.encoded.Store(v, encoded)
	}
	return encoded.(part)
}

// Gather implements prometheus.Gatherer.
func (p *Publisher) Gather() (families []*dto.MetricFamily, err error) {
	for f := range p.current() {
		families, err = append(families, f.definition.Family(f.samples)), errors.Join(err, f.err)
	}
	return families, err
}

// Samples returns the samples that are published, by name without namespace, sorted by labels. A
// metric that has none is there, too.
func (p *Publisher) Samples() map[string][]*metric.Sample {
	all := map[string][]*metric.Sample{}
	for _, g := range p.groups {
		for _, d := range g.Definitions {
			all[strings.TrimPrefix(d.Name, metric.Namespace)] = nil
		}
	}
	for f := range p.current() {
		all[strings.TrimPrefix(f.definition.Name, metric.Namespace)] = f.samples
	}
	return all
}
