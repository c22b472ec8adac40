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
		found, err := ActiveServers([]Scope{{Account: "main", Facts: snap.Facts, Incomplete: map[string]bool{serversName: false}}}, "")
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
