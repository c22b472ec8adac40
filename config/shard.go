package config

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"server_rental_exporter/collector"
)

// maxShards is far above what one provider's rate limits allow.
const maxShards = 1000

// Shard is the part of the accounts that this process exports. Shard 0 also has the
// public collectors and the watches.
type Shard struct {
	Index int // 0 to Total-1
	Total int // 1 to 1000
}

// ShardOf returns the index of the shard that exports an account, by rendezvous hashing of
// its name: from N to N+1 shards, one account in N+1 moves.
func ShardOf(account string, total int) int {
	best, highest := 0, uint64(0)
	for i := range total {
		sum := sha256.Sum256([]byte(strconv.Itoa(i) + " " + account))
		if weight := binary.BigEndian.Uint64(sum[:]); weight >= highest {
			best, highest = i, weight
		}
	}
	return best
}

// Own returns the configuration of this shard: with its own accounts only, and without
// public collectors and watches unless it is shard 0.
func (c *Config) Own(resources []collector.Resource) *Config {
	own := *c
	own.Accounts = slices.DeleteFunc(slices.Clone(c.Accounts), func(a Account) bool {
		return ShardOf(a.Name, c.Shard.Total) != c.Shard.Index
	})
	if c.Shard.Index > 0 {
		own.Watches = nil
		own.Collectors = maps.Clone(c.Collectors)
		for _, r := range resources {
			if !r.Account {
				delete(own.Collectors, r.Name)
			}
		}
	}
	return &own
}

// loadShard reads the flags of the shard.
func (l *loader) loadShard() {
	shard := &l.config.Shard
	shard.Total = 1
	index, total := &l.flags.shard, &l.flags.totalShards
	if index.isSet() && !total.isSet() {
		l.errs.add(index.position(), "needs %s", total.flag)
		return
	}
	read := func(o *option, into *int, least, most int) bool {
		if !o.isSet() {
			return true
		}
		n, err := strconv.Atoi(o.value)
		if err != nil || n < least || n > most {
			l.errs.add(o.position(), "must be a number from %d to %d", least, most)
			return false
		}
		*into = n
		return true
	}
	_ = read(total, &shard.Total, 1, maxShards) && read(index, &shard.Index, 0, shard.Total-1)
}
