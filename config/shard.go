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

// loadShard reads the flags of the shard: 0 of 1, unless they are set. The variable of the index
// must not be empty if there are several: the platform did not number this process.
func (l *loader) loadShard(lookup func(string) (string, bool)) {
	indexFlag, totalFlag := &l.flags.shard, &l.flags.totalShards
	index, indexErr := strconv.Atoi(indexFlag.value)
	total, totalErr := strconv.Atoi(totalFlag.value)
	if totalFlag.isSet() && (totalErr != nil || total < 1 || total > maxShards) {
		l.add(totalFlag.place(), "must be a number from 1 to %d", maxShards)
		total = maxShards
	}
	switch _, isThere := lookup(indexFlag.envar); {
	case indexFlag.isSet() && !totalFlag.isSet():
		l.add(indexFlag.place(), "needs %s", totalFlag.flag)
	case (indexFlag.isSet() || isThere && total > 1) && (indexErr != nil || index < 0 || index >= total):
		l.add(indexFlag.place(), "must be a number from 0 to %d", total-1)
	}
	l.config.Shard = Shard{Index: index, Total: max(1, total)}
}
