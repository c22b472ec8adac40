package collector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"server_rental_exporter/internal/metric"
)

// mostServers bounds the servers of one account.
const mostServers = 20_000

// server is API.md's Server.
type server struct {
	ID        string
	Plan      string
	Name      string
	Location  string
	OS        string
	Hostname  string
	IPv4      addresses
	Status    *string
	Price     struct{ Monthly monthly }
	RenewsAt  *instant `json:"renews_at"`
	CreatedAt *instant `json:"created_at"`
}

// addresses are a server's IPv4 addresses: a string in revision 1.1 of the API,
// an array of strings in 1.0.
type addresses []string

func (a *addresses) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*a = addresses{one}
		return nil
	}
	var many []string
	if json.Unmarshal(b, &many) != nil {
		return wrong(a)
	}
	*a = many
	return nil
}

type serversMeta struct{ Count, Active *count }

var (
	serversByStatus = metric.Gauge("servers", "Servers of the account by status; active and suspended are always there.", "Server status", "account", "status")
	serversActive   = metric.Gauge("servers_active", "Active servers of the account, as the provider counts them.", "servers meta.active", "account")
	serverInfo      = metric.Gauge("server_info", "What a server is; constant 1. Addresses are not shown.", "Server", "account", "server", "plan", "name", "location", "os", "hostname")
	serverStatus    = metric.Gauge("server_status", "The present status of a server in the provider's own word; constant 1.", "Server status", "account", "server", "status")
	serverPrice     = metric.Gauge("server_price_usd_per_month", "Price of a server in US dollars a month.", "Server price.monthly.usd", "account", "server")
	serverRenews    = metric.Gauge("server_renews_timestamp_seconds", "When a server renews next: midnight UTC of the day.", "Server renews_at", "account", "server")
	serverCreated   = metric.Gauge("server_created_timestamp_seconds", "When a server was created.", "Server created_at", "account", "server")
	accountCost     = metric.Gauge("account_cost_usd_per_month", "What the account's servers cost a month; servers whose price is unknown add nothing.", "sum of Server price.monthly.usd", "account")
	accountFunded   = metric.Gauge("account_funded_until_timestamp_seconds", "The first renewal that today's balance cannot pay, when each server renews monthly at its present price; ten years ahead at most. Absent without servers.", "Account balance.usd, Server renews_at and price.monthly.usd", "account")
)

func servers() Resource {
	return Resource{
		Name: "servers", Help: "servers, their status, price and renewal", Endpoint: "/servers", Account: true,
		Interval: time.Minute, MaxAge: 10 * time.Minute, Requests: 1,
		Metrics: []*metric.Definition{
			serversByStatus, serversActive, serverInfo, serverStatus, serverPrice, serverRenews, serverCreated, accountCost, accountFunded,
		},
		open: func() fetch {
			return list[server, serversMeta]{
				endpoint: "/servers", most: mostServers,
				id:   func(s *server) string { return s.ID },
				item: showServer,
				rest: showServers,
			}.fetch
		},
	}
}

func showServer(b *metric.Builder, s *server) {
	b.Add(serverInfo, 1, s.ID, s.Plan, s.Name, s.Location, s.OS, s.Hostname)
	if s.Status != nil {
		b.Add(serverStatus, 1, s.ID, *s.Status)
	}
	metric.Put(b, serverPrice, s.Price.Monthly.USD, s.ID)
	metric.Put(b, serverRenews, s.RenewsAt, s.ID)
	metric.Put(b, serverCreated, s.CreatedAt, s.ID)
}

// fleet is a servers snapshot's data.
type fleet struct {
	renewals renewals
	active   []Server // for service discovery; without the account
}

func showServers(b *metric.Builder, m *serversMeta, shown []*server) any {
	byStatus := map[string]float64{"active": 0, "suspended": 0}
	f := &fleet{renewals: renewals{}}
	var cost micros
	for _, s := range shown {
		status := ""
		if s.Status != nil {
			status = *s.Status
		}
		byStatus[status]++
		if status == "active" {
			f.active = append(f.active, Server{
				ID: s.ID, Plan: s.Plan, Location: s.Location, OS: s.OS, Hostname: s.Hostname, Status: status, IPv4: s.IPv4,
			})
		}
		if p := s.Price.Monthly.USD; p != nil {
			cost += microsOf(*p)
			f.renewals.add(s.RenewsAt, *p)
		}
	}
	slices.SortFunc(f.active, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	for status, n := range byStatus {
		b.Add(serversByStatus, n, status)
	}
	metric.Put(b, serversActive, m.Active)
	b.Add(accountCost, cost.value())
	return f
}

// Errors of ActiveServers.
var (
	ErrUnknownAccount = errors.New("servers: unknown account")
	ErrIncomplete     = errors.New("servers: not all are known")
)

// Server is an active server, for service discovery.
type Server struct {
	Account, ID, Plan, Location, OS, Hostname, Status string
	IPv4                                              []string
}

// ActiveServers returns the active servers of an account, or of all accounts where
// it is empty, in order of account and id. It fails with ErrIncomplete rather than
// to leave servers out, and with ErrUnknownAccount.
func (s *Set) ActiveServers(account string) ([]Server, error) {
	var found []Server
	known := account == ""
	for _, sc := range s.ordered() {
		if sc.account == "" || account != "" && sc.account != account {
			continue
		}
		known = true
		owned, err := sc.fleet()
		if err != nil {
			return nil, err
		}
		for _, v := range owned.active {
			v.Account = sc.account
			found = append(found, v)
		}
	}
	if !known {
		return nil, ErrUnknownAccount
	}
	return found, nil
}

// fleet returns the servers of a scope where all of them are known.
func (v scopeView) fleet() (*fleet, error) {
	for _, src := range v.sources {
		snap, ok := src.Value()
		if f, is := snap.data.(*fleet); ok && is {
			if n := snap.invalid.count; n > 0 {
				return nil, fmt.Errorf("%w: account %s: %d could not be understood", ErrIncomplete, v.account, n)
			}
			return f, nil
		}
	}
	return nil, fmt.Errorf("%w: account %s: no current list", ErrIncomplete, v.account)
}
