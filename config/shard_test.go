package config

import (
	"fmt"
	"testing"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
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

// TestOwn has each account in one shard, and the public data in the first.
func TestOwn(t *testing.T) {
	all := &Config{Collectors: map[string]Collector{}, Watches: []collector.Watch{{Name: "w"}}}
	for _, r := range collector.Resources() {
		all.Collectors[r.Name] = Collector{Enabled: true}
	}
	for i := range 20 {
		all.Accounts = append(all.Accounts, Account{Name: fmt.Sprint("account-", i)})
	}
	found := map[string]int{}
	for i := range 3 {
		all.Shard = Shard{i, 3}
		own := all.Own(collector.Resources())
		for _, a := range own.Accounts {
			found[a.Name]++
		}
		simtest.AssertEqual(t, fmt.Sprint("public data and watches of shard ", i), []bool{own.Collectors["plans"].Enabled, len(own.Watches) > 0}, []bool{i == 0, i == 0})
		simtest.AssertEqual(t, "servers", own.Collectors["servers"].Enabled, true)
	}
	for _, a := range all.Accounts {
		simtest.AssertEqual(t, a.Name, found[a.Name], 1)
	}
}
