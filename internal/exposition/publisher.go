// Package exposition serves metrics that change rarely at the cost of copying their
// bytes.
//
// Metrics are published in groups that change together. A Publisher encodes and
// compresses the groups that changed, once for each variant that was asked for
// lately, and swaps one pointer to the result. A scrape loads it, joins the encoded
// blocks and adds what changes all the time, encoded afresh. To be joined, compressed
// blocks are flushed to a byte and their checksums combined into those of one gzip
// member: several members are read by few clients.
package exposition

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// restFactor is how many times as long the publisher rests as it worked: it uses a
// tenth of a processor at most, whatever changes.
const restFactor = 9

// minExpiry is the least time until a group is collected again because it expired, so
// that one with an expiry in the past does not occupy the publisher.
const minExpiry = 10 * time.Millisecond

// variantTTL is for how long a variant is encoded after it was asked for.
const variantTTL = 10 * time.Minute

// Group is a set of metric families that are published together.
type Group struct {
	// Definitions are all families that Collect may return. No other group has them.
	Definitions []*metric.Definition
	// Collect returns the present metrics, which are Samples of package metric, and when
	// they change by the passing of time; zero if they do not. It is called by one
	// goroutine at a time.
	Collect func(now time.Time) (metrics []prometheus.Metric, expires time.Time)

	publisher *Publisher
	changed   atomic.Bool
	expires   time.Time
}

// Changed has the group published anew. It does not block. The group must have been
// handed to NewPublisher.
func (g *Group) Changed() {
	g.changed.Store(true)
	select {
	case g.publisher.wake <- struct{}{}:
	default: // a wake-up that is pending already suffices
	}
}

// Publisher keeps groups of metrics encoded. As a prometheus.Collector it returns
// what is published.
type Publisher struct {
	groups    []*Group
	wake      chan struct{}
	published atomic.Pointer[[]*block] // in the order of groups; immutable

	publishing sync.Mutex // held while Publish works
	encoding   sync.Mutex // held while a block is encoded: one at a time, to bound memory
	lastUsed   sync.Map   // time.Time by variant
}

// NewPublisher returns a publisher of groups. Nothing is published yet.
func NewPublisher(groups ...*Group) *Publisher {
	p := &Publisher{groups: groups, wake: make(chan struct{}, 1)}
	p.published.Store(&[]*block{})
	for _, g := range groups {
		g.publisher = p
		g.Changed()
	}
	return p
}

// Run publishes whenever a group changes or expires, until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	for {
		began := time.Now()
		expires := p.Publish()
		select {
		case <-ctx.Done():
			return
		case <-time.After(restFactor * time.Since(began)):
		}
		var expired <-chan time.Time
		if !expires.IsZero() {
			expired = time.After(max(time.Until(expires), minExpiry))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-expired:
		}
	}
}

// Publish publishes the groups that changed or expired, and returns when the next
// one expires; zero for never. What changed before is served when it returns.
func (p *Publisher) Publish() (expires time.Time) {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	now := time.Now()
	old := *p.published.Load()
	blocks := make([]*block, len(p.groups))
	for i, g := range p.groups {
		expired := !g.expires.IsZero() && !now.Before(g.expires)
		if g.changed.Swap(false) || expired {
			var metrics []prometheus.Metric
			metrics, g.expires = g.Collect(now)
			blocks[i] = newBlock(metrics, g.Definitions)
		} else {
			blocks[i] = old[i]
		}
		if !g.expires.IsZero() && (expires.IsZero() || g.expires.Before(expires)) {
			expires = g.expires
		}
	}
	p.lastUsed.Range(func(v, at any) bool {
		if time.Since(at.(time.Time)) <= variantTTL {
			for _, b := range blocks {
				p.encode(b, v.(variant))
			}
		}
		return true
	})
	p.published.Store(&blocks)
	return expires
}

// encoded returns what is published in a variant, which is encoded in advance from now
// on.
func (p *Publisher) encoded(v variant) (parts []part) {
	p.lastUsed.Store(v, time.Now())
	for _, b := range *p.published.Load() {
		parts = append(parts, p.encode(b, v)...)
	}
	return parts
}

// encode returns a block in a variant. The first call encodes it, others wait.
func (p *Publisher) encode(b *block, v variant) []part {
	encode, _ := b.encoded.LoadOrStore(v, sync.OnceValue(func() (parts []part) {
		p.encoding.Lock()
		defer p.encoding.Unlock()
		for _, f := range b.families {
			parts = append(parts, f.encode(v))
		}
		return parts
	}))
	return encode.(func() []part)()
}

// CacheBytes returns the bytes of encoded metrics that are kept for scrapes.
func (p *Publisher) CacheBytes() int {
	n := 0
	for _, b := range *p.published.Load() {
		b.encoded.Range(func(_, encode any) bool {
			for _, part := range encode.(func() []part)() {
				n += len(part.body)
			}
			return true
		})
	}
	return n
}

// Describe implements prometheus.Collector.
func (p *Publisher) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range p.groups {
		for _, d := range g.Definitions {
			ch <- d.Desc
		}
	}
}

// Collect implements prometheus.Collector.
func (p *Publisher) Collect(ch chan<- prometheus.Metric) {
	for _, b := range *p.published.Load() {
		for _, f := range b.families {
			for _, m := range f.metrics {
				ch <- m
			}
		}
	}
}
