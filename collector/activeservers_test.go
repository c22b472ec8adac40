package collector

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestActiveServersOfResponse has responses of which all, some or no active servers are
// known.
func TestActiveServersOfResponse(t *testing.T) {
	list := func(statuses ...string) string {
		items := make([]string, len(statuses))
		for i, status := range statuses {
			items[i] = fmt.Sprintf(`{"id":"s%d","ipv4":"198.18.0.%d","status":%s}`, i, i, status)
		}
		return strings.Join(items, ",")
	}
	for _, c := range []struct{ data, active, want string }{
		{list(`"active"`, `"ACTIVE"`, `"suspended"`, `"Active"`), "3", "s0 active, s1 ACTIVE, s3 Active"},
		{list(`"active"`), "2", ""},
		{list(`"active"`, `"active"`), "1", ""},
		{list(), "1", ""},
		{list(`"Suspended"`), "0", "none"},
		{list(`"active"`), "null", "s0 active"},
		{list(`"active"`), `"many"`, "s0 active"},
		{list(`"active"`, `null`), "1", ""},
		{list(`"active"`) + `,{"id":"no-address","status":null,"ipv4":null}`, "2", "s0 active"},
		{list(`"active"`) + `,{"id":"no-address","status":null,"ipv4":null}`, "3", ""},
	} {
		snap, err := fetchBody(t, servers(), []byte(`{"data":[`+c.data+`],"meta":{"active":`+c.active+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		found, err := ActiveServers([]Scope{{Account: "main", Facts: snap.Facts}}, "")
		var got []string
		for _, s := range found {
			got = append(got, s.ID+" "+s.Status)
		}
		if c.want == "" {
			if !errors.Is(err, ErrUnknownServers) {
				t.Errorf("%s, meta.active %s: got %v and error %v, want %v", c.data, c.active, got, err, ErrUnknownServers)
			}
			continue
		}
		simtest.AssertEqual(t, c.data+", error", err, error(nil))
		simtest.AssertEqual(t, c.data, strings.Join(got, ", "), strings.TrimPrefix(c.want, "none"))
	}
}

// TestActiveServersOfAccounts has the accounts main and lab, each with a list of servers
// or none.
func TestActiveServersOfAccounts(t *testing.T) {
	const active = `{"id":%q,"ipv4":%s,"status":"active","plan":"p","location":"fra","os":"debian-13","hostname":"h"}`
	server := func(id, addresses string) string { return fmt.Sprintf(active, id, addresses) }
	found := func(account, id, address string) Server {
		return Server{Account: account, ID: id, Plan: "p", Location: "fra", OS: "debian-13", Hostname: "h", Status: "active", IPv4: address}
	}
	const one = `"198.18.0.1"`
	for _, c := range []struct {
		main, lab, account string
		want               []Server
		err                error
	}{
		{server("b", one) + "," + server("a", one), server("d", one), "", []Server{found("lab", "d", "198.18.0.1"), found("main", "a", "198.18.0.1"), found("main", "b", "198.18.0.1")}, nil},
		{server("a", one), server("d", one), "lab", []Server{found("lab", "d", "198.18.0.1")}, nil},
		{server("", one), server("d", one), "lab", []Server{found("lab", "d", "198.18.0.1")}, nil}, // not partial
		{"", "", "", nil, nil},
		{"", "", "nobody", nil, ErrUnknownAccount},
		{
			server("list", `["198.18.0.1","198.18.0.2"]`) + "," + server("none", `[""]`) + "," + server("null", "null"), "", "main",
			[]Server{found("main", "list", "198.18.0.1"), found("main", "none", ""), found("main", "null", "")},
			nil,
		},
		{server("a", "7"), "", "", nil, ErrUnknownServers},
		{server("", one), "", "", nil, ErrUnknownServers},
		{server("a", one) + `,{"id":"b","ipv4":7,"status":"suspended"}`, "", "", nil, ErrUnknownServers},
		{server("a", one) + `,{"id":"b","ipv4":"198.18.0.2","status":""}`, "", "", nil, ErrUnknownServers},
		{server("a", one) + `,{"id":"b","ipv4":"198.18.0.2","status":7}`, "", "", nil, ErrUnknownServers},
	} {
		var scopes []Scope
		for _, account := range []string{"lab", "main"} {
			data := map[string]string{"lab": c.lab, "main": c.main}[account]
			snap, err := fetchBody(t, servers(), []byte(`{"data":[`+data+`]}`))
			if err != nil {
				t.Fatal(err)
			}
			scopes = append(scopes, Scope{Account: account, Facts: snap.Facts})
		}
		got, err := ActiveServers(scopes, c.account)
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("main %s: got error %v, want %v", c.main, err, c.err)
		}
		simtest.AssertEqual(t, c.main, got, c.want)
	}
}
