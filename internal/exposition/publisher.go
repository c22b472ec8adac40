// Package exposition serves metrics that change rarely at the cost of copying their bytes.
//
// Metrics are published in groups that change together. A Publisher encodes the groups that
// changed, once for each variant that was requested lately, and swaps one pointer to the result.
// A scrape joins the encoded families with the metrics of the process, which it encodes itself.
// Compressed families become one gzip member: few clients read several.
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

// Group is a set of metric families that are published together.
type Group struct {
	// Definitions lists all families that Collect may return. No other group has them.
	Definitions []*metric.Definition
	// Collect returns the present samples, and the time at which they change by themselves; zero
	// if they do not. One goroutine at a time calls it.
	Collect func(now time.Time) (samples []*metric.Sample, expires time.Time)

	changed atomic.Bool

	published // families that were collected last
}

// published are the families of a group. It is immutable.
type published struct {
	families []*family
	expires  time.Time // wall clock; zero if they do not expire
}

// Changed marks the group for the next publication. It does not block.
func (g *Group) Changed() { g.changed.Store(true) }

// Publisher keeps groups of metrics encoded. As a prometheus.Gatherer it returns what is
// published.
type Publisher struct {
	groups    []*Group
	published atomic.Pointer[[]published] // same order as groups; immutable

	publishing sync.Mutex // held while Publish works
	at         time.Time  // wall clock at the last publication
	encoding   sync.Mutex // held while a family is encoded: one at a time, to bound memory
	lastUsed   sync.Map   // maps a variant to the time.Time of its last request
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
		work := time.Since(began)
		rest := min(restFactor*work, maxRest)
		for _, g := range *p.published.Load() {
			if !g.expires.IsZero() {
				rest = min(rest, max(g.expires.Sub(time.Now().Round(0)), work))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(rest, publishInterval)):
		}
	}
}

// Publish publishes the groups that changed or expired, all as they are at one moment. When it
// returns, earlier changes are served. If the wall clock was set back, every group may have expired.
func (p *Publisher) Publish() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	now := time.Now().Round(0) // wall clock, which may step
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
	if !ok {
		encoded, _ = f.encoded.LoadOrStore(v, sync.OnceValue(func() part {
			p.encoding.Lock()
			defer p.encoding.Unlock()
			return encode(familyEncoders, v, f.messages(v), "", f.err)
		}))
	}
	return encoded.(func() part)()
}

// Gather implements prometheus.Gatherer.
func (p *Publisher) Gather() (families []*dto.MetricFamily, err error) {
	for f := range p.current() {
		families, err = append(families, f.definition.Family(f.samples)), errors.Join(err, f.err)
	}
	return families, err
}

// Samples returns the published samples, by name without namespace, sorted by labels. The map has
// a key for every metric, also for one without samples.
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
