package collector

import (
	"errors"
	"fmt"
	"slices"
)

// Scope is what is known of one account.
type Scope struct {
	Account string
	Facts   Facts
	// Incomplete has the names of the enabled collectors, and whether the newest response
	// of each contradicted itself.
	Incomplete map[string]bool
}

// Server is an active server, for service discovery.
type Server struct {
	Account, ID, Plan, Location, OS, Hostname, Status string
	IPv4                                              []string
}

// Errors of ActiveServers.
var (
	ErrUnknownAccount = errors.New("servers: unknown account")
	ErrUnknownServers = errors.New("servers: not all are known")
)

// ActiveServers returns the active servers of an account, or of all accounts if it is
// empty, sorted by account and id. It fails with ErrUnknownAccount, and with
// ErrUnknownServers rather than return a partial list.
func ActiveServers(scopes []Scope, account string) ([]Server, error) {
	if account != "" {
		scopes = slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return s.Account != account })
		if len(scopes) == 0 {
			return nil, ErrUnknownAccount
		}
	}
	var found []Server
	for _, s := range scopes {
		if err := s.checkServers(); err != nil {
			return nil, fmt.Errorf("%w: account %s: %w", ErrUnknownServers, s.Account, err)
		}
		for _, v := range s.Facts.Servers.active {
			v.Account = s.Account
			found = append(found, v)
		}
	}
	return found, nil
}

// checkServers returns why not all servers of the account are known.
func (s Scope) checkServers() error {
	incomplete, enabled := s.Incomplete[serversName]
	servers := s.Facts.Servers
	switch {
	case !enabled:
		return errors.New("the collector is disabled")
	case incomplete:
		return errors.New("the newest response is incomplete")
	case servers == nil:
		return errors.New("no current list")
	case servers.unknown > 0:
		return fmt.Errorf("%d servers whose id, status or address is unknown", servers.unknown)
	case servers.contradicted:
		return errors.New("meta.active contradicts the list")
	}
	return nil
}
