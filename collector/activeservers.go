package collector

import (
	"errors"
	"fmt"
	"slices"
)

// Server is an active server, for service discovery.
type Server struct {
	Account, ID, Plan, Location, OS, Hostname, Status string
	IPv4                                              string // the first address; empty if it has none
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
		servers, err := s.Facts.Servers, error(nil)
		switch {
		case slices.Contains(s.Incomplete, serversName):
			err = errors.New("the newest response is incomplete")
		case servers == nil:
			err = errors.New("no current list")
		default:
			err = servers.partial
		}
		if err != nil {
			return nil, fmt.Errorf("%w: account %s: %w", ErrUnknownServers, s.Account, err)
		}
		for _, v := range servers.active {
			v.Account = s.Account
			found = append(found, v)
		}
	}
	return found, nil
}
