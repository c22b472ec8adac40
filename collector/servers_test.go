package collector

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

func rented(id, status string, more simulator.Object) simulator.Object {
	o := simulator.Object{"id": id, "plan": "p", "location": "fra", "os": "debian-13", "hostname": id + ".example", "status": status, "ipv4": "198.18.0.1"}
	for k, v := range more {
		o[k] = v
	}
	return o
}

func found(account, id string, ipv4 ...string) Server {
	return Server{Account: account, ID: id, Plan: "p", Location: "fra", OS: "debian-13", Hostname: id + ".example", Status: "active", IPv4: ipv4}
}

// TestActiveServers asks for the servers of two accounts.
func TestActiveServers(t *testing.T) {
	for _, c := range []struct {
		name        string
		main, other []simulator.Object
		account     string
		want        []Server
		err         error
	}{
		{
			name:  "all, in order of account and id",
			main:  []simulator.Object{rented("b", "active", nil), rented("a", "active", nil), rented("c", "suspended", nil)},
			other: []simulator.Object{rented("d", "active", nil)},
			want:  []Server{found("main", "a", "198.18.0.1"), found("main", "b", "198.18.0.1"), found("other", "d", "198.18.0.1")},
		},
		{
			name:    "of one account",
			main:    []simulator.Object{rented("a", "active", nil)},
			other:   []simulator.Object{rented("d", "active", nil)},
			account: "other",
			want:    []Server{found("other", "d", "198.18.0.1")},
		},
		{name: "none", want: nil},
		{name: "unknown account", account: "nobody", err: ErrUnknownAccount},
		{
			name: "addresses of both revisions",
			main: []simulator.Object{
				rented("list", "active", simulator.Object{"ipv4": []string{"198.18.0.1", "198.18.0.2"}}), rented("no-list", "active", simulator.Object{"ipv4": []string{}}),
				rented("null", "active", simulator.Object{"ipv4": nil}), rented("one", "active", nil),
			},
			want: []Server{found("main", "list", "198.18.0.1", "198.18.0.2"), found("main", "no-list"), found("main", "null"), found("main", "one", "198.18.0.1")},
		},
		{
			name: "status in other words is not active",
			main: []simulator.Object{rented("a", "Active", nil), rented("b", "activating", nil), rented("c", "", nil), rented("d", "active", simulator.Object{"status": nil})},
		},
		{
			name: "not all understood",
			main: []simulator.Object{rented("a", "active", nil), rented("b", "suspended", simulator.Object{"ipv4": 7})},
			err:  ErrIncomplete,
		},
		{
			name:    "another account's are not all understood",
			main:    []simulator.Object{rented("a", "active", nil), rented("a", "active", nil)},
			other:   []simulator.Object{rented("d", "active", nil)},
			account: "other",
			want:    []Server{found("other", "d", "198.18.0.1")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.sim.Change(func(w *simulator.World) {
					w.Accounts[mainToken].Servers = c.main
					w.Accounts[otherToken] = &simulator.Account{Servers: c.other}
				})
				config := every(time.Minute, time.Hour, "servers", "plans")
				config.Accounts = append(config.Accounts, accountOf("other", otherToken))
				r.run(config)
				r.settle()
				got, err := r.set.ActiveServers(c.account)
				if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Errorf("error:\n got %v\nwant %v", err, c.err)
				}
				same(t, "servers", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c.want))
			})
		})
	}
}

// TestActiveServersOverTime begins before the first answer and ends after the last.
func TestActiveServersOverTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.sim.Change(func(w *simulator.World) {
			w.Accounts[mainToken].Servers = []simulator.Object{rented("a", "active", nil)}
			w.Accounts[otherToken] = &simulator.Account{}
		})
		r.sim.Inject(simulator.Fault{Path: "/servers", Kind: simulator.Delay, Delay: 5 * time.Second, Times: 2})
		config := every(time.Minute, 10*time.Minute, "servers")
		config.Accounts = append(config.Accounts, accountOf("other", otherToken))
		r.run(config)
		step := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			got, err := r.set.ActiveServers("")
			same(t, fmt.Sprintf("after %v", after), fmt.Sprint(len(got), errors.Is(err, ErrIncomplete)), want)
		}
		step(time.Second, "0 true")
		step(5*time.Second, "1 false")
		r.sim.Inject(simulator.Fault{Path: "/servers", Token: otherToken, Kind: simulator.Respond, Status: 500})
		step(9*time.Minute, "1 false")
		step(3*time.Minute, "0 true")

		config.Accounts = config.Accounts[:1]
		r.run(config)
		step(time.Second, "1 false")
		delete(config.Collectors, "servers")
		r.run(config)
		step(time.Second, "0 true")
		if _, err := r.set.ActiveServers("other"); !errors.Is(err, ErrUnknownAccount) {
			t.Errorf("removed account: got %v, want %v", err, ErrUnknownAccount)
		}
	})
}
