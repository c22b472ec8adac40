package collector

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestActiveServers has the accounts lab, with one active server, and main, whose response
// tells of all, some or no active servers.
func TestActiveServers(t *testing.T) {
	const one = `"198.18.0.1"`
	server := func(id, addresses, status string) string {
		return fmt.Sprintf(`{"id":%q,"ipv4":%s,"status":%s,"plan":"p","location":"FRA","os":"debian-13","hostname":"h"}`, id, addresses, status)
	}
	list := func(statuses ...string) string {
		items := make([]string, len(statuses))
		for i, status := range statuses {
			items[i] = server(fmt.Sprint("s", i), one, status)
		}
		return strings.Join(items, ",")
	}
	const none = `,{"id":"none","status":null,"ipv4":null}`
	for _, c := range []struct {
		main, active, account string
		want                  string // account, id and address of each
		err                   error
	}{
		{server("b", one, `"active"`) + "," + server("a", one, `"active"`), "2", "", "lab d 198.18.0.9, main a 198.18.0.1, main b 198.18.0.1", nil},
		{list(`"active"`), "1", "lab", "lab d 198.18.0.9", nil},
		{server("", one, `"active"`), "1", "lab", "lab d 198.18.0.9", nil}, // not partial
		{"", "0", "main", "", nil},
		{"", "0", "nobody", "", ErrUnknownAccount},
		{server("list", `["198.18.0.1","198.18.0.2"]`, `"active"`) + "," + server("empty", `["","198.18.0.2"]`, `"active"`), "2", "main", "main empty 198.18.0.2, main list 198.18.0.1", nil},
		{server("none", `[""]`, `"active"`) + "," + server("null", "null", `"active"`), "2", "main", "main none , main null ", nil},

		{list(`"active"`) + "," + server("b", "7", `"suspended"`), "1", "main", "main s0 198.18.0.1", nil},

		// What is not known may be an active server.
		{server("a", "7", `"active"`), "1", "", "", ErrUnknownServers},
		{server("a", "7", "null"), "0", "", "", ErrUnknownServers},
		{server("", one, `"active"`), "1", "", "", ErrUnknownServers},
		{list(`"active"`, `""`), "1", "", "", ErrUnknownServers},
		{list(`"active"`, `7`), "1", "", "", ErrUnknownServers},
		{list(`"active"`, `null`), "1", "", "", ErrUnknownServers},

		// meta.active
		{list(`"active"`, `"ACTIVE"`, `"suspended"`, `"Active"`), "3", "main", "main s0 198.18.0.1, main s1 198.18.0.1, main s3 198.18.0.1", nil},
		{list(`"active"`), "2", "", "", ErrUnknownServers},
		{list(`"active"`, `"active"`), "1", "", "", ErrUnknownServers},
		{list(), "1", "", "", ErrUnknownServers},
		{list(`"active"`), "null", "main", "main s0 198.18.0.1", nil},
		{list(`"active"`), `"many"`, "main", "main s0 198.18.0.1", nil},
		{list(`"active"`) + none, "2", "main", "main s0 198.18.0.1", nil},
		{list(`"active"`) + none, "3", "", "", ErrUnknownServers},
	} {
		var accounts []Known
		for _, body := range []string{"lab:" + server("d", `"198.18.0.9"`, `"active"`) + `],"meta":{"active":1}}`, "main:" + c.main + `],"meta":{"active":` + c.active + `}}`} {
			account, data, _ := strings.Cut(body, ":")
			snap, err := fetchBody(t, servers(), []byte(`{"data":[`+data))
			if err != nil {
				t.Fatal(err)
			}
			accounts = append(accounts, Known{Account: account, Data: snap.Data})
		}
		found, err := ActiveServers(accounts, c.account)
		var got []string
		for _, s := range found {
			got = append(got, s.Account+" "+s.ID+" "+s.IPv4)
			if s.Status = strings.ToLower(s.Status); s != (Server{s.Account, s.ID, "p", "fra", "debian-13", "h", "active", s.IPv4}) {
				t.Errorf("%s: got %+v", c.main, s)
			}
		}
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s, meta.active %s: got error %v, want %v", c.main, c.active, err, c.err)
		}
		simtest.AssertEqual(t, c.main, strings.Join(got, ", "), c.want)
	}
}
