package collector

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

const testAddress = "198.18.0.1"

// serverOf returns a server as the provider sends it.
func serverOf(id string, address, status any) simulator.Object {
	return simulator.Object{"id": id, "ipv4": address, "status": status, "plan": "p", "location": "FRA", "os": "debian-13", "hostname": "h"}
}

// withStatuses returns servers s0, s1 and so on.
func withStatuses(statuses ...any) (list []simulator.Object) {
	for i, status := range statuses {
		list = append(list, serverOf(fmt.Sprint("s", i), testAddress, status))
	}
	return list
}

// targets returns the active servers of accounts.
func targets(t *testing.T, list []simulator.Object, active any, names string) ([]Server, error) {
	t.Helper()
	if list == nil {
		list = []simulator.Object{}
	}
	var accounts []AccountData
	for _, a := range []struct {
		name   string
		list   []simulator.Object
		active any
	}{{"lab", withStatuses("active"), 1}, {"main", list, active}} {
		body := simtest.Encode(t, simulator.Object{"data": a.list, "meta": simulator.Object{"active": a.active}})
		accounts = append(accounts, AccountData{Name: a.name, Data: newBodyTest(t, servers, body).mustFetch().Data})
	}
	return ActiveServers(accounts, strings.Fields(names)...)
}

// TestActiveServers has the accounts lab, with one active server, and main.
func TestActiveServers(t *testing.T) {
	target := func(account, id, address, status string) Server {
		addr, _ := netip.ParseAddr(address) // not valid if it is empty
		return Server{Account: account, ID: id, Plan: "p", Location: "fra", OS: "debian-13", Hostname: "h", Status: status, IPv4: addr}
	}
	lab, first := target("lab", "s0", testAddress, "active"), target("main", "s0", testAddress, "active")
	for _, c := range []struct {
		name   string
		list   []simulator.Object
		active any
		names  string // separated by spaces
		want   []Server
		err    error
	}{
		{"all accounts", []simulator.Object{serverOf("b", testAddress, "active"), serverOf("a", testAddress, "active")}, 2, "", []Server{
			lab, target("main", "b", testAddress, "active"), target("main", "a", testAddress, "active"),
		}, nil},
		{"one account", withStatuses("active"), 1, "lab", []Server{lab}, nil},
		{"another one is partial", []simulator.Object{serverOf("", testAddress, "active")}, 1, "lab", []Server{lab}, nil},
		{"two accounts", withStatuses("active"), 1, "main lab", []Server{lab, first}, nil},
		{"two accounts, of which one is unknown", nil, 0, "lab nobody", nil, ErrNoAccount},
		{"no servers", nil, 0, "main", nil, nil},
		{"unknown account", nil, 0, "nobody", nil, ErrNoAccount},
		{"first of several addresses", []simulator.Object{serverOf("a", []string{"", "198.18.0.2", "198.18.0.3"}, "active")}, 1, "main", []Server{target("main", "a", "198.18.0.2", "active")}, nil},
		{"without address", []simulator.Object{serverOf("a", []string{""}, "active"), serverOf("b", nil, "active")}, 2, "main", []Server{
			target("main", "a", "", "active"), target("main", "b", "", "active"),
		}, nil},
		{"statuses", withStatuses("active", "ACTIVE", "suspended", "Active"), 3, "main", []Server{
			first, target("main", "s1", testAddress, "ACTIVE"), target("main", "s3", testAddress, "Active"),
		}, nil},
		{"wrong address", []simulator.Object{serverOf("a", 7, "active")}, 1, "main", []Server{target("main", "a", "", "active")}, nil},
		{"blanks and a prefix length", []simulator.Object{serverOf("a", "\u00a0198.18.0.1/32 ", "active\t")}, 1, "main", []Server{target("main", "a", testAddress, "active")}, nil},
		{"active is a text", withStatuses("active"), "many", "main", []Server{first}, nil},

		// An active server may be missing.
		{"id", []simulator.Object{serverOf("", testAddress, "active")}, nil, "", nil, ErrIncompleteServers},
		{"status", withStatuses("active", nil), 1, "", nil, ErrIncompleteServers},
		{"fewer than active", withStatuses("active"), 2, "", nil, ErrIncompleteServers},
		{"more than active", withStatuses("active", "active"), 1, "", nil, ErrIncompleteServers},
		{"none", nil, 1, "", nil, ErrIncompleteServers},
	} {
		got, err := targets(t, c.list, c.active, c.names)
		simtest.AssertEqual(t, c.name, got, c.want)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.err)
		}
	}
}

// TestAddresses has texts that are no addresses: each counts.
func TestAddresses(t *testing.T) {
	for _, text := range []any{"198.18.0.1:22", "198.18.0.1, 198.18.0.2", "198.18.0.1/33", "198.18.0.256", "node-1.example", []any{testAddress, "none"}} {
		s := newBodyTest(t, servers, simtest.Encode(t, simulator.Object{"data": []any{serverOf("a", text, "active")}})).mustFetch()
		want := rentalapi.FieldError{Item: "a", Field: "ipv4", Problem: "not an address or an array of addresses"}
		simtest.AssertEqual(t, fmt.Sprint(text), slices.Contains(s.Invalid.Causes, want), true)
		simtest.AssertEqual(t, fmt.Sprint(text), s.Data.Servers.active[0].IPv4.IsValid(), false)
	}
}
