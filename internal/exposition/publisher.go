// Package exposition serves metrics that change rarely at the cost of copying their
// bytes.
//
// Metrics are published in groups that change together. A Publisher encodes and
// compresses the groups that changed, once for each variant that was requested in the
// last minutes, and swaps one pointer to the result. A scrape loads it, joins the encoded
// blocks and adds the metrics of the process, which it encodes itself. To be joined, compressed
// blocks are flushed to a byte and their checksums combined into those of one gzip
// member: several members are read by few clients.
package exposition

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

// restFactor is the ratio of the publisher's pauses to its work: it uses at most a tenth of
// a processor.
const restFactor = 9

// publishInterval is the least time between two publications.
const publishInterval = 100 * time.Millisecond

// variantTTL is for how long a variant is encoded after it was asked for.
const variantTTL = 10 * time.Minute

// Group is a set of metric families that are published together.
type Group struct {
	// Definitions are all families that Collect may return. No other group has them.
	Definitions []*metric.Definition
	// Collect returns the present metrics, which are Samples of package metric or of
	// Gathered, and when they change by the passing of time; zero if they do not. It is
	// called by one goroutine at a time.
	Collect func(now time.Time) (metrics []prometheus.Metric, expires time.Time)

	changed atomic.Bool
	expires time.Time
}

// Changed marks the group for the next publication. It does not block.
func (g *Group) Changed() { g.changed.Store(true) }

// Publisher keeps groups of metrics encoded. As a prometheus.Collector it returns
// what is published.
type Publisher struct {
	groups    []*Group
	published atomic.Pointer[[]*block] // in the order of groups; immutable

	publishing sync.Mutex // held while Publish works
	encoding   sync.Mutex // held while a block is encoded: one at a time, to bound memory
	lastUsed   sync.Map   // time.Time by variant
}

// NewPublisher returns a publisher of groups. Nothing is published yet.
func NewPublisher(groups ...*Group) *Publisher {
	p := &Publisher{groups: groups}
	blocks := make([]*block, len(groups))
	for i, g := range groups {
		blocks[i] = &block{}
		g.Changed()
	}
	p.published.Store(&blocks)
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
		case <-time.After(max(publishInterval, restFactor*time.Since(began))):
		}
	}
}

// Publish publishes the groups that changed or expired. What changed before is served when
// it returns.
func (p *Publisher) Publish() {
	p.publishing.Lock()
	defer p.publishing.Unlock()
	now, blocks := time.Now(), slices.Clone(*p.published.Load())
	for i, g := range p.groups {
		expired := !g.expires.IsZero() && !now.Before(g.expires)
		if g.changed.Swap(false) || expired {
			var metrics []prometheus.Metric
			metrics, g.expires = g.Collect(now)
			blocks[i] = newBlock(metrics, g.Definitions)
			p.lastUsed.Range(func(v, at any) bool {
				if now.Sub(at.(time.Time)) <= variantTTL {
					p.encode(blocks[i], v.(variant))
				}
				return true
			})
		}
	}
	p.published.Store(&blocks)
}

// encoded returns what is published in a variant. From now on, that variant is encoded in
// advance.
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
			parts = append(parts, encode(blockEncoders, part{family: f.definition.Name, err: f.err}, v, f.messages(v)))
		}
		return parts
	}))
	return encode.(func() []part)()
}

// Describe implements prometheus.Collector. A registry checks what is collected.
func (p *Publisher) Describe(chan<- *prometheus.Desc) {}

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

// Samples returns the samples that are published, by name without namespace, sorted by labels.
func (p *Publisher) Samples() map[string][]*metric.Sample {
	all := map[string][]*metric.Sample{}
	for _, b := range *p.published.Load() {
		for _, f := range b.families {
			name := strings.TrimPrefix(f.definition.Name, metric.Namespace)
			for _, m := range f.metrics {
				if s, ok := m.(*metric.Sample); ok { // else it was gathered
					all[name] = append(all[name], s)
				}
			}
		}
	}
	return all
}
