package config

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
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

// checkShard reads the flags of the shard: 0 of 1, unless they are set. The variable of the index
// must not be empty if there are several: the platform did not number this process.
func (l *loader) checkShard(lookup func(string) (string, bool)) {
	l.Shard = Shard{Index: 0, Total: 1}
	if l.flags.totalShards.isSet() {
		l.Shard.Total = l.number(&l.flags.totalShards, 1, maxShards)
	}
	if _, isThere := lookup(l.flags.shard.envar); l.flags.shard.isSet() || isThere && l.Shard.Total > 1 {
		l.Shard.Index = l.number(&l.flags.shard, 0, l.Shard.Total-1)
	}
}

// number returns the value of an option, which must be within bounds; otherwise the upper one.
func (l *loader) number(o *option, least, most int) int {
	n, err := strconv.Atoi(o.value)
	if err != nil || n < least || n > most {
		l.add(o.place(), "must be a number from %d to %d", least, most)
		return most
	}
	return n
}
