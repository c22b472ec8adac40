package collector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// server is the provider's Server.
type server struct {
	ID        string
	Plan      string
	Name      string
	Location  locationID
	OS        string
	Hostname  string
	IPv4      address
	Status    state
	Price     struct{ Monthly struct{ USD *quantity } }
	RenewsAt  *timestamp `json:"renews_at"`
	CreatedAt *timestamp `json:"created_at"`
}

// address is a server's first IPv4 address: a string in revision 1.1 of the API, an array of strings
// in 1.0. Null and empty strings are no addresses. A prefix length is left out.
type address struct{ netip.Addr }

// Decode implements rentalapi.Value.
func (a *address) Decode(value any) string {
	text, isText := value.(string)
	list := []*string{&text}
	if array, isArray := value.(json.RawMessage); isArray {
		isText = json.Unmarshal(array, &list) == nil
	}
	for _, element := range list {
		text := strings.TrimSpace(*cmp.Or(element, new(string)))
		prefix, err := netip.ParsePrefix(text)
		found := prefix.Addr()
		if err != nil {
			found, err = netip.ParseAddr(text)
		}
		if !isText || text != "" && err != nil {
			return "not an address or an array of addresses"
		}
		a.Addr = cmp.Or(a.Addr, found)
	}
	return ""
}

var (
	serverSet metric.Set

	serversByStatus       = serverSet.Gauge("servers", "Servers of the account by status; active and suspended are always present.", "account", "status")
	serversBilled         = serverSet.Gauge("servers_billed", "Servers of the account that are billed, as their status does not mean an end.", "account")
	serversActive         = serverSet.Gauge("servers_active", "Active servers of the account, as the provider counts them.", "account")
	serverInfo            = serverSet.Gauge("server_info", "Plan, location, image and host name of a server.", "account", "server", "plan", "name", "location", "os", "hostname")
	serverStatus          = serverSet.Gauge("server_status", "The present status of a server, as the provider words it.", "account", "server", "status")
	serverPrice           = serverSet.Gauge("server_price_usd_per_month", "Price of a server in US dollars a month, excluding VAT.", "account", "server")
	serverRenews          = serverSet.Gauge("server_renews_timestamp_seconds", "When a server renews next: midnight UTC of the day.", "account", "server")
	serverCreated         = serverSet.Gauge("server_created_timestamp_seconds", "When a server was created.", "account", "server")
	serverLastPriceChange = serverSet.Gauge("server_last_price_change_timestamp_seconds", "When the exporter last saw the price of a server in US dollars change.", "account", "server")
	serverPreviousPrice   = serverSet.Gauge("server_previous_price_usd_per_month", "Price of a server in US dollars a month, excluding VAT, before it last changed.", "account", "server")
	serversLastAdded      = serverSet.Gauge("servers_last_added_timestamp_seconds", "When the exporter last saw a billed server come.", "account")
	serversLastRemoved    = serverSet.Gauge("servers_last_removed_timestamp_seconds", "When the exporter last saw a billed server go: missing from two responses in a row, or not billed any more.", "account")
	accountCost           = serverSet.Gauge("account_cost_usd_per_month", "Sum of the known prices of the billed servers, in US dollars a month, excluding VAT.", "account")
)

var servers = Resource{
	Name: "servers", Help: "servers, their status, price and renewal", Path: "/servers", Account: true,
	Timing:  Timing{Interval: time.Minute, MaxAge: 10 * time.Minute},
	Metrics: serverSet,
	get:     getList(20_000, addServers),
	changes: &changeKind{
		changes: []change{
			{of: attrPresence, to: isListed, event: "server added"},
			{of: attrPresence, to: isGone, event: "server removed"},
			{of: attrPrice, last: serverLastPriceChange, previous: serverPreviousPrice},
			{of: attrState, event: "server status changed"},
			{of: attrClass, to: "true", lastOfAny: serversLastAdded}, // whether it is billed
			{of: attrClass, to: "false", lastOfAny: serversLastRemoved},
		},
		absent:    values{attrClass: "false"},
		forgets:   true,
		tolerated: 1,
	},
}

// Billed returns whether the provider charges for servers with a status. It documents only active and
// suspended; other ones are billed unless they mean an end.
func Billed(status string) bool {
	ends := []string{"canceled", "cancelled", "terminated", "deleted", "expired"}
	return !slices.Contains(ends, strings.ToLower(status))
}

// ServerData holds the servers of an account, for service discovery and funding.
type ServerData struct {
	active   []*server
	partial  bool                 // whether servers may be missing from active
	renewals map[time.Time]micros // sum of prices by the day (UTC) on which billed servers renew next, or should have renewed
}

func addServers(b *metric.Builder, page rentalapi.Page[server, struct{ Active *count }], s *Snapshot) {
	byStatus, d := map[state]float64{"active": 0, "suspended": 0}, &ServerData{renewals: map[time.Time]micros{}}
	for _, i := range page.Items {
		class := ""
		if i.Status != "" {
			class = strconv.FormatBool(Billed(string(i.Status)))
			b.Add(serverStatus, 1, i.ID, string(i.Status))
		}
		b.Add(serverInfo, 1, i.ID, i.Plan, i.Name, string(i.Location), i.OS, i.Hostname)
		metric.AddOptional(b, serverPrice, i.Price.Monthly.USD, i.ID)
		metric.AddOptional(b, serverRenews, i.RenewsAt, i.ID)
		metric.AddOptional(b, serverCreated, i.CreatedAt, i.ID)
		byStatus[i.Status]++
		if strings.EqualFold(string(i.Status), "active") {
			d.active = append(d.active, i)
		}
		s.items = append(s.items, item{
			id: i.ID, labels: []string{i.ID}, keys: [][2]string{{"server", i.ID}, {"hostname", i.Hostname}},
			values: values{attrIdentity: numberText(i.CreatedAt), attrPrice: numberText(i.Price.Monthly.USD), attrState: string(i.Status), attrClass: class},
		})
	}
	claimed := page.Meta.Active
	d.partial = s.partial || byStatus[""] > 0 || claimed != nil && *claimed != count(len(d.active))
	delete(byStatus, "")
	for status, n := range byStatus {
		b.Add(serversByStatus, n, string(status))
	}
	metric.AddOptional(b, serversActive, claimed)
	s.checkMeta("active", claimed, len(d.active))
	d.addBilling(b, page.Items)
	s.Data.Servers = d
}

// addBilling adds the number of billed servers and their cost, and keeps their renewals.
func (d *ServerData) addBilling(b *metric.Builder, servers []*server) {
	var cost micros
	billed := slices.DeleteFunc(slices.Clone(servers), func(s *server) bool { return !Billed(string(s.Status)) })
	priced := slices.DeleteFunc(slices.Clone(billed), func(s *server) bool { return s.Price.Monthly.USD == nil })
	for _, s := range priced {
		usd := microsOf(*s.Price.Monthly.USD)
		cost += usd
		if s.RenewsAt != nil {
			d.renewals[s.RenewsAt.time().UTC().Truncate(24*time.Hour)] += usd
		}
	}
	b.Add(serversBilled, float64(len(billed)))
	if len(billed) == 0 || len(priced) > 0 {
		b.Add(accountCost, cost.value())
	}
}

// Server is an active server, for service discovery.
type Server struct {
	Account, ID, Plan, Location, OS, Hostname, Status string
	IPv4                                              netip.Addr // the first address; not valid if it has none
}

// Errors of ActiveServers.
var (
	ErrNoAccount         = errors.New("servers: no such account")
	ErrIncompleteServers = errors.New("servers: list is incomplete")
)

// ActiveServers returns the active servers of the named accounts, or of all if no name is given, in their
// order. It fails with ErrNoAccount, and with ErrIncompleteServers rather than return a partial
// list.
func ActiveServers(accounts []AccountData, names ...string) (all []Server, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(accounts, func(a AccountData) bool { return a.Name == name }) {
			return nil, ErrNoAccount
		}
	}
	for _, a := range accounts {
		if len(names) > 0 && !slices.Contains(names, a.Name) {
			continue
		}
		if a.Servers == nil || a.Servers.partial || slices.Contains(a.Incomplete, servers.Name) {
			return nil, fmt.Errorf("%w: account %s", ErrIncompleteServers, a.Name)
		}
		for _, s := range a.Servers.active {
			all = append(all, Server{a.Name, s.ID, s.Plan, string(s.Location), s.OS, s.Hostname, string(s.Status), s.IPv4.Addr})
		}
	}
	return all, nil
}
