package config

import (
	"fmt"
	"testing"
)

// TestShardOf grows from each number of shards to the next: accounts move to the new shard
// only, about as many as it has then, and no shard has far more than its part.
func TestShardOf(t *testing.T) {
	const accounts = 5000
	for total := 1; total < 12; total++ {
		moved, sizes := 0, make([]int, total+1)
		for i := range accounts {
			name := fmt.Sprint("account-", i)
			before, after := ShardOf(name, total), ShardOf(name, total+1)
			sizes[after]++
			switch after {
			case before:
			case total:
				moved++
			default:
				t.Errorf("%s: moves from %d to %d of %d", name, before, after, total+1)
			}
		}
		part := accounts / (total + 1)
		for i, n := range append(sizes, moved) {
			if n < part*8/10 || n > part*12/10 {
				t.Errorf("%d shards: number %d has %d accounts, want about %d", total+1, i, n, part)
			}
		}
	}
}
