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

	mu       sync.Mutex
	ids      map[string]string   // the provider's Account id by account
	accounts map[string][]string // the reverse, sorted
}

func newIdentities(logger log.Logger) *identities {
	return &identities{logger: logger, ids: map[string]string{}, accounts: map[string][]string{}}
}

// record keeps the provider's id of an account if the facts tell it, and warns if it is
// another one than before, or if another account has it.
func (i *identities) record(account string, f collector.Facts) {
	if f.Account == nil {
		return
	}
	id := f.Account.ID
	before := i.replace(account, id)
	if before == id {
		return
	}
	if before != "" {
		level.Warn(i.logger).Log("msg", "account has become another provider account", "account", account, "before", before, "now", id)
	}
	if other := i.duplicateOf(account); other != "" {
		level.Warn(i.logger).Log("msg", "same provider account configured more than once", "account", account, "first", other)
	}
}

// replace sets the id of an account, or forgets the account if it is empty, and returns
// the one that it had before.
func (i *identities) replace(account, id string) (before string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before = i.ids[account]
	if before == id {
		return before
	}
	i.accounts[before] = slices.DeleteFunc(i.accounts[before], func(a string) bool { return a == account })
	if len(i.accounts[before]) == 0 {
		delete(i.accounts, before)
	}
	delete(i.ids, account)
	if id != "" {
		i.ids[account] = id
		i.accounts[id] = append(i.accounts[id], account)
		slices.Sort(i.accounts[id])
	}
	return before
}

// duplicateOf returns the first other account with the same id of the provider; empty if
// there is none.
func (i *identities) duplicateOf(account string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, other := range i.accounts[i.ids[account]] {
		if other != account {
			return other
		}
	}
	return ""
}
