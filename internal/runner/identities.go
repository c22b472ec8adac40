package runner

import (
	"slices"
	"sync"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"server_rental_exporter/collector"
)

// identities keeps which account of the provider each configured account is. It finds
// accounts that are configured twice, so that sums over accounts count them twice, and
// accounts whose token has become that of another account of the provider.
type identities struct {
	logger log.Logger

	mu   sync.Mutex
	byID map[string][]string // accounts by the provider's Account id, sorted
}

// record keeps the provider's id of an account if the facts tell it, and warns if it is
// another one than before, or if another account has it.
func (i *identities) record(account string, f collector.Facts) {
	if f.Account == nil {
		return
	}
	before, duplicate := i.add(account, f.Account.ID)
	if before != "" && before != f.Account.ID {
		level.Warn(i.logger).Log("msg", "account has become another provider account", "account", account, "before", before, "now", f.Account.ID)
	}
	if duplicate != "" {
		level.Warn(i.logger).Log("msg", "same provider account configured more than once", "account", account, "first", duplicate)
	}
}

// add returns the id that the account had before, and another account with the new id
// if the account did not have it before.
func (i *identities) add(account, id string) (before, duplicate string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if slices.Contains(i.byID[id], account) {
		return id, ""
	}
	for known, accounts := range i.byID {
		if slices.Contains(accounts, account) {
			before = known
		}
	}
	i.remove(account)
	i.byID[id] = append(i.byID[id], account)
	slices.Sort(i.byID[id])
	return before, i.other(account, id)
}

// forget drops an account that is no longer configured.
func (i *identities) forget(account string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remove(account)
}

func (i *identities) remove(account string) {
	for id, accounts := range i.byID {
		i.byID[id] = slices.DeleteFunc(accounts, func(a string) bool { return a == account })
		if len(i.byID[id]) == 0 {
			delete(i.byID, id)
		}
	}
}

// duplicateOf returns the first other account with the provider's id; empty if there is
// none.
func (i *identities) duplicateOf(account, id string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.other(account, id)
}

func (i *identities) other(account, id string) string {
	for _, other := range i.byID[id] {
		if other != account {
			return other
		}
	}
	return ""
}
