package runner

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// testServer returns a server as the provider sends it.
func testServer(id, status string, more simulator.Object) simulator.Object {
	o := simulator.Object{"id": id, "plan": "p", "location": "fra", "os": "debian-13", "hostname": id + ".example", "status": status, "ipv4": "198.18.0.1"}
	for k, v := range more {
		o[k] = v
	}
	return o
}

// target returns the server that ActiveServers should find for a testServer.
func target(account, id string, ipv4 ...string) collector.Server {
	return collector.Server{Account: account, ID: id, Plan: "p", Location: "fra", OS: "debian-13", Hostname: id + ".example", Status: "active", IPv4: ipv4}
}

func TestActiveServers(t *testing.T) {
	active := func(id string) simulator.Object { return testServer(id, "active", nil) }
	for _, c := range []struct {
		name      string
		main, lab []simulator.Object
		account   string
		want      []collector.Server
		err       error
	}{
		{
			name: "all, sorted by account and id",
			main: []simulator.Object{active("b"), active("a"), testServer("c", "suspended", nil)},
			lab:  []simulator.Object{active("d")},
			want: []collector.Server{target("lab", "d", "198.18.0.1"), target("main", "a", "198.18.0.1"), target("main", "b", "198.18.0.1")},
		},
		{
			name: "one account",
			main: []simulator.Object{active("a")},
			lab:  []simulator.Object{active("d")}, account: "lab",
			want: []collector.Server{target("lab", "d", "198.18.0.1")},
		},
		{name: "none"},
		{name: "unknown account", account: "nobody", err: collector.ErrUnknownAccount},
		{
			name: "addresses of both API revisions",
			main: []simulator.Object{
				testServer("list", "active", simulator.Object{"ipv4": []string{"198.18.0.1", "198.18.0.2"}}), testServer("no-list", "active", simulator.Object{"ipv4": []string{""}}),
				testServer("null", "active", simulator.Object{"ipv4": nil}), active("one"),
			},
			want: []collector.Server{target("main", "list", "198.18.0.1", "198.18.0.2"), target("main", "no-list"), target("main", "null"), target("main", "one", "198.18.0.1")},
		},
		{
			name: "other states",
			main: []simulator.Object{testServer("a", "suspended", nil), testServer("b", "activating", nil)},
		},
		{name: "unknown status", main: []simulator.Object{active("a"), testServer("b", "active", simulator.Object{"status": nil})}, err: collector.ErrUnknownServers},
		{name: "empty status", main: []simulator.Object{active("a"), testServer("b", "", nil)}, err: collector.ErrUnknownServers},
		{
			name: "neither status nor address yet",
			main: []simulator.Object{active("a"), testServer("b", "active", simulator.Object{"status": nil, "ipv4": nil})},
			want: []collector.Server{target("main", "a", "198.18.0.1")},
		},
		{
			name: "invalid field that is no part of a target",
			main: []simulator.Object{testServer("a", "active", simulator.Object{"created_at": "", "renews_at": 5})},
			want: []collector.Server{target("main", "a", "198.18.0.1")},
		},
		{name: "invalid address", main: []simulator.Object{active("a"), testServer("b", "suspended", simulator.Object{"ipv4": 7})}, err: collector.ErrUnknownServers},
		{name: "invalid status", main: []simulator.Object{active("a"), testServer("b", "active", simulator.Object{"status": 7})}, err: collector.ErrUnknownServers},
		{name: "server without id", main: []simulator.Object{active("a"), active("")}, err: collector.ErrUnknownServers},
		{
			name:    "invalid server of another account",
			main:    []simulator.Object{active("a"), active("a")},
			lab:     []simulator.Object{active("d")},
			account: "lab",
			want:    []collector.Server{target("lab", "d", "198.18.0.1")},
		},
	} {
		subtest(t, c.name, func(t *testing.T, h *harness) {
			h.Change(func(w *simulator.World) {
				w.Accounts[simtest.MainToken].Servers = c.main
				w.Accounts[simtest.LabToken].Servers = c.lab
			})
			h.run(configure(time.Minute, time.Hour, "servers", "plans").withLab())
			h.settle()
			got, err := collector.ActiveServers(h.set.Accounts(), c.account)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("error:\n got %v\nwant %v", err, c.err)
			}
			h.assertEqual("servers", got, c.want)
		})
	}
}

// TestActiveServersOverTime starts before the first answer and ends after the last.
func TestActiveServersOverTime(t *testing.T) {
	withHarness(t, func(t *testing.T, h *harness) {
		h.Change(func(w *simulator.World) {
			w.Accounts[simtest.MainToken].Servers = []simulator.Object{testServer("a", "active", nil)}
			w.Accounts[simtest.LabToken].Servers = nil
		})
		h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Delay, Delay: 5 * time.Second, Times: 2})
		config := configure(time.Minute, 10*time.Minute, "servers").withLab()
		h.run(config)
		after := func(d time.Duration, what string, servers int, want error) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			got, err := collector.ActiveServers(h.set.Accounts(), "")
			if len(got) != servers || !errors.Is(err, want) {
				t.Errorf("%s: got %d servers and error %v, want %d and %v", what, len(got), err, servers, want)
			}
		}
		after(time.Second, "before the first answer", 0, collector.ErrUnknownServers)
		after(5*time.Second, "after the first answer", 1, nil)
		repair := h.Inject(simtest.Fault{Path: "/servers", Token: simtest.LabToken, Kind: simtest.Respond, Status: 500})
		after(9*time.Minute, "failing", 1, nil)
		after(3*time.Minute, "failing longer than max_age", 0, collector.ErrUnknownServers)
		repair()
		after(5*time.Minute, "recovered", 1, nil)

		// An incomplete answer counts until a complete one, also if requests fail then.
		repair = h.Override("/servers", func(w http.ResponseWriter, r *http.Request) {
			body := simtest.Decode(t, []byte(h.Body("/servers", r.Header.Get("Authorization")[len("Bearer "):])))
			simtest.Put(body, 40, "meta", "count")
			_, _ = w.Write(simtest.Encode(t, body))
		})
		after(90*time.Second, "incomplete", 0, collector.ErrUnknownServers)
		h.assertEqual("data of an incomplete answer", h.values(def("servers")), map[string]float64{
			"main active": 1, "main suspended": 0, "lab active": 0, "lab suspended": 0,
		})
		repair()
		repair = h.Inject(simtest.Fault{Path: "/servers", Kind: simtest.Hang})
		after(2*time.Minute, "no answer after an incomplete one", 0, collector.ErrUnknownServers)
		repair()
		after(3*time.Minute, "complete again", 1, nil)

		config.Accounts = config.Accounts[:1]
		h.run(config)
		after(time.Second, "without lab", 1, nil)
		if _, err := collector.ActiveServers(h.set.Accounts(), "lab"); !errors.Is(err, collector.ErrUnknownAccount) {
			t.Errorf("removed account: got %v, want %v", err, collector.ErrUnknownAccount)
		}
		delete(config.Collectors, "servers")
		h.run(config)
		after(time.Second, "without the collector", 0, collector.ErrUnknownServers)
	})
}
