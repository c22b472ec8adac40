package collector

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/exposition"
	"server_rental_exporter/internal/metric"
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
// block that is costly to make then stays for a while, so that scrapes find it
// ready: it is that much older than it could be.
const (
	manyEditions  = 50 // editions; fewer do not change every moment, and old ones would only take memory
	costly        = 5 * time.Millisecond
	lingerFactor  = 1000 // of the time that making it took
	longestLinger = 15 * time.Second
	dueLinger     = 10 * time.Second // where there is time to make another one ready
)

// lingers tells whether the block may stand for newer snapshots of the same sources.
func (b shelved) lingers(newer []edition, longest time.Duration) bool {
	sameSource := func(a, b edition) bool { return a.src == b.src }
	if len(newer) < manyEditions || !slices.EqualFunc(b.editions, newer, sameSource) {
		return false
	}
	took := b.block.Took()
	return took >= costly && time.Since(b.made) < min(longest, lingerFactor*took)
}

// edition is a snapshot of one source, or what there is to say of its attempts.
type edition struct {
	src      *source
	at       time.Time     // of the snapshot, or the end of the last attempt
	interval time.Duration // of attempts; 0 for a snapshot
}

// Renewed tells that the blocks have changed. One message may stand for many changes.
func (s *Set) Renewed() <-chan struct{} { return s.renewed }

// stateOf is the name under which the block of State is kept. No resource has it.
const stateOf = ""

// Blocks returns the data of all collectors and what State says of them: a block
// for each resource, with all accounts, and one for State. A block stays the same
// until one of its snapshots changes or expires, or an attempt ends; one that is
// costly to make, a little longer.
func (s *Set) Blocks() []*exposition.Block { return s.blocks(longestLinger) }

// Due is Blocks with those made anew that will soon have to be: for whoever makes
// them ready before a scrape asks for them.
func (s *Set) Due() []*exposition.Block { return s.blocks(dueLinger) }

func (s *Set) blocks(linger time.Duration) []*exposition.Block {
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
		b := s.shelf.keep(r.Name, editions, linger, func() *exposition.Block { return newBlock(r, snaps) })
		next[r.Name] = b
		blocks = append(blocks, b.block)
	}
	if editions := stateEditions(views, midnight()); len(editions) > 0 {
		b := s.shelf.keep(stateOf, editions, linger, func() *exposition.Block { return stateBlock(views) })
		next[stateOf] = b
		blocks = append(blocks, b.block)
	}
	s.shelf.kept = next
	return blocks
}

// KeptBytes returns the bytes that the blocks hold that were last returned.
func (s *Set) KeptBytes() int {
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	n := 0
	for _, b := range s.shelf.kept {
		n += b.block.Size()
	}
	return n
}

// keep returns the block that is kept under a name, or a new one where that
// shows other editions.
func (s *shelf) keep(name string, editions []edition, linger time.Duration, make func() *exposition.Block) shelved {
	b := s.kept[name]
	if slices.Equal(b.editions, editions) || b.lingers(editions, linger) {
		return b
	}
	return shelved{editions, make(), time.Now()}
}

// stateEditions returns what State's metrics follow from, the day included: when an
// account's balance is used up is counted from today.
func stateEditions(views []scopeView, day time.Time) []edition {
	var editions []edition
	for _, v := range views {
		for _, src := range v.sources {
			state := src.State()
			editions = append(editions, edition{src, state.Ended, state.Interval})
			if _, at, ok := src.Last(); ok {
				editions = append(editions, edition{src: src, at: at})
			}
		}
	}
	if len(editions) > 0 {
		editions = append(editions, edition{at: day})
	}
	return editions
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
				editions = append(editions, edition{src: src, at: at})
				snaps = append(snaps, snap)
			}
		}
	}
	return editions, snaps
}

func newBlock(r *Resource, snaps []snapshot) *exposition.Block {
	n := 0
	for _, snap := range snaps {
		n += len(snap.metrics)
	}
	metrics := make([]prometheus.Metric, 0, n)
	for _, snap := range snaps {
		metrics = append(metrics, snap.metrics...)
	}
	return exposition.NewBlock(metrics, descs(r.Metrics))
}

func stateBlock(views []scopeView) *exposition.Block {
	var metrics []prometheus.Metric
	for _, v := range views {
		v.showState(func(m prometheus.Metric) { metrics = append(metrics, m) })
	}
	return exposition.NewBlock(metrics, descs(stateDefinitions()))
}

func descs(definitions []*metric.Definition) []*prometheus.Desc {
	all := make([]*prometheus.Desc, 0, len(definitions))
	for _, d := range definitions {
		all = append(all, d.Desc())
	}
	return all
}

// midnight is the last one, UTC.
func midnight() time.Time { return time.Now().UTC().Truncate(24 * time.Hour) }
