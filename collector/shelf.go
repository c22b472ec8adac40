package collector

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/exposition"
)

// shelf keeps the block of each resource for as long as the snapshots in it are
// those that are shown.
type shelf struct {
	mu   sync.Mutex
	kept map[string]shelved // by resource
}

type shelved struct {
	editions []edition
	block    *exposition.Block
	made     time.Time
}

// With hundreds of accounts some snapshot of a resource changes every moment. A
// block then stays for a multiple of the time that making it took, so that most
// scrapes find it ready: it is that much older than it could be, and a block that
// is made in a few milliseconds practically never.
const (
	lingerFactor  = 20
	longestLinger = 15 * time.Second
)

// lingers tells whether the block may stand for newer snapshots of the same sources.
func (b shelved) lingers(newer []edition) bool {
	sameSource := func(a, b edition) bool { return a.src == b.src }
	return slices.EqualFunc(b.editions, newer, sameSource) &&
		time.Since(b.made) < min(longestLinger, lingerFactor*b.block.Took())
}

// edition is a snapshot of one source.
type edition struct {
	src *source
	at  time.Time
}

// Renewed tells that the blocks have changed. One message may stand for many changes.
func (s *Set) Renewed() <-chan struct{} { return s.renewed }

// Blocks returns the data of all collectors: a block for each resource, with all
// accounts. A block stays the same until one of its snapshots changes or expires;
// one that is costly to make, a little longer.
func (s *Set) Blocks() []*exposition.Block {
	views := s.ordered()
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	next := map[string]shelved{}
	blocks := make([]*exposition.Block, 0, len(s.resources))
	for i := range s.resources {
		r := &s.resources[i]
		editions, snaps := current(views, r)
		if len(editions) == 0 {
			continue
		}
		b := s.shelf.kept[r.Name]
		if !slices.Equal(b.editions, editions) && !b.lingers(editions) {
			b = shelved{editions, newBlock(r, snaps), time.Now()}
		}
		next[r.Name] = b
		blocks = append(blocks, b.block)
	}
	s.shelf.kept = next
	return blocks
}

// current returns the snapshots of a resource that are shown now.
func current(views []scopeView, r *Resource) ([]edition, []snapshot) {
	var editions []edition
	var snaps []snapshot
	for _, v := range views {
		for _, src := range v.sources {
			if src.resource != r {
				continue
			}
			if snap, at, ok := src.Last(); ok {
				editions = append(editions, edition{src, at})
				snaps = append(snaps, snap)
			}
		}
	}
	return editions, snaps
}

func newBlock(r *Resource, snaps []snapshot) *exposition.Block {
	descs := make([]*prometheus.Desc, 0, len(r.Metrics))
	for _, d := range r.Metrics {
		descs = append(descs, d.Desc())
	}
	n := 0
	for _, snap := range snaps {
		n += len(snap.metrics)
	}
	metrics := make([]prometheus.Metric, 0, n)
	for _, snap := range snaps {
		metrics = append(metrics, snap.metrics...)
	}
	return exposition.NewBlock(metrics, descs)
}
