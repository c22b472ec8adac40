package collector

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// eventTexts returns events as they are logged.
func eventTexts(events []Event) []string {
	texts := []string{}
	for _, e := range events {
		text := e.Message + ":"
		for _, key := range e.Keys {
			text += fmt.Sprintf(" %s=%s", key[0], key[1])
		}
		texts = append(texts, text)
	}
	return texts
}

// TestEvents changes the provider's data between two responses: there are events after the
// change only.
func TestEvents(t *testing.T) {
	account := func(w *simulator.World) *simulator.Account { return w.Accounts[simtest.MainToken] }
	for _, c := range []struct {
		resource string
		change   func(w *simulator.World)
		want     []string
	}{
		{"plans", func(w *simulator.World) { w.SetStock("epyc-9654", "fra", true) }, []string{"plan in stock: plan=epyc-9654 name=EPYC 9654 usd_per_month=899"}},
		{"plans", func(w *simulator.World) { simulator.Put(w.Plans[0], false, "availability", "in_stock") }, []string{"plan sold out: plan=xeon-e-2236 name=Xeon E-2236 usd_per_month=59.9"}},
		{"plans", func(w *simulator.World) { simulator.Put(w.Plans[0], 50.5, "price", "monthly", "usd") }, []string{"plan price changed: plan=xeon-e-2236 name=Xeon E-2236 before=59.9 after=50.5"}},
		{"plans", func(w *simulator.World) { w.Plans = w.Plans[1:] }, []string{"plan removed: plan=xeon-e-2236 name=Xeon E-2236 usd_per_month=59.9"}},
		{"plans", func(w *simulator.World) {
			w.Plans = append(w.Plans, simulator.Object{"id": "new", "name": "New", "availability": simulator.Object{"in_stock": true}})
		}, []string{"plan added: plan=new name=New usd_per_month="}},
		{"status", func(w *simulator.World) {
			simulator.Put(w.Status, "degraded", "locations", "fra", "components", "network")
		}, []string{"component state changed: location=fra component=network before=operational after=degraded"}},
		{"configurations", func(w *simulator.World) { account(w).Configurations[0]["in_stock"] = false }, []string{"configuration sold out: configuration=cfg_1 plan=ryzen-9-9950x location=fra"}},
		{"configurations", func(w *simulator.World) { account(w).Configurations[1]["in_stock"] = true }, []string{"configuration in stock: configuration=cfg_2 plan=epyc-9654 location=nyc"}},
		{"servers", func(w *simulator.World) { account(w).Servers = account(w).Servers[1:] }, []string{"server removed: server=srv_1 hostname=one"}},
		{"servers", func(w *simulator.World) {
			account(w).Servers = append(account(w).Servers, simulator.Object{"id": "srv_3", "status": "active", "ipv4": "192.0.2.3"})
		}, []string{"server added: server=srv_3 hostname="}},
		{"servers", func(w *simulator.World) { account(w).Servers[0]["status"] = "suspended" }, []string{"server status changed: server=srv_1 hostname=one before=active after=suspended"}},
		{"topups", func(w *simulator.World) { account(w).Topups[0]["status"] = "paid" }, []string{"top-up status changed: topup=tu_1 usd=10 before=pending after=paid"}},
		{"topups", func(w *simulator.World) {
			account(w).Topups = append([]simulator.Object{oneTopup("tu_2", "pending")}, account(w).Topups...)
		}, []string{}},
	} {
		t.Run(c.resource, func(t *testing.T) {
			f := newFetchTest(t, Resources()[slices.IndexFunc(Resources(), func(r Resource) bool { return r.Name == c.resource })])
			f.account.Servers = []simulator.Object{{"id": "srv_1", "hostname": "one", "status": "active"}, {"id": "srv_2", "hostname": "two", "status": "active"}}
			f.account.Topups = append([]simulator.Object{oneTopup("tu_1", "pending")}, simulator.Topups(200, today)...)
			f.account.Configurations = []simulator.Object{
				{"id": "cfg_1", "plan": "ryzen-9-9950x", "location": "fra", "in_stock": true}, {"id": "cfg_2", "plan": "epyc-9654", "location": "nyc", "in_stock": false},
			}
			fetch := func() []string {
				snap, err := f.do(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				return eventTexts(snap.Events)
			}
			simtest.AssertEqual(t, "first sight", fetch(), []string{})
			simtest.AssertEqual(t, "no change", fetch(), []string{})
			f.Change(c.change)
			simtest.AssertEqual(t, "change", fetch(), c.want)
			simtest.AssertEqual(t, "afterwards", fetch(), []string{})
		})
	}
}

// TestPlanEvents changes plans from one response to the next, a minute later, as
// TestWatchSteps does. A response that is not committed was an older copy.
func TestPlanEvents(t *testing.T) {
	for steps, want := range map[string]string{
		// A plan that returns as it was less than an hour ago is nothing.
		"a b; b; a b":                           "; plan removed a; ",
		"a b; b; a/out b":                       "; plan removed a; plan sold out a",
		"a/out; none; a/in/60":                  "; plan removed a; plan in stock a, plan price changed a",
		"a; none; 57 minutes; a":                "; plan removed a; ; ",
		"a; none; 58 minutes; a":                "; plan removed a; ; plan added a",
		"a; 90 minutes; a; 90 minutes; none; a": "; ; ; ; plan removed a; plan added a",
		"none; a/out; a; a/out":                 "; plan added a; plan in stock a; plan sold out a",
		"a; a b/out; none; a":                   "; plan added b; plan removed a, plan removed b; ",
		"a; none; none; a; none":                "; plan removed a; ; ; plan removed a",
		"a; older: none; a; none":               "; plan removed a; ; plan removed a",
		// What is not known is as it was.
		"a; a/?/?; a":         "; ; ",
		"a; a/?; a/out":       "; ; plan sold out a",
		"a/?/?; a; a/out":     "; ; plan sold out a",
		"a b; a !; a b; b":    "; ; ; plan removed a",
		"a b; a !; a":         "; ; plan removed b",
		"a; older: a/out; a":  "; plan sold out a; ",
		"a; a/in/60; a/in/50": "; plan price changed a; plan price changed a",
	} {
		api, last := newFakeAPI(), Snapshot{}
		var body []byte
		api.body = func(url.Values) []byte { return body }
		var got []string
		for step := range strings.SplitSeq(steps, "; ") {
			var minutes int
			if _, err := fmt.Sscanf(step, "%d minutes", &minutes); err == nil { // pass without a response
				api.response.Received = api.response.Received.Add(time.Duration(minutes) * time.Minute)
				got = append(got, "")
				continue
			}
			api.response.Received = api.response.Received.Add(time.Minute)
			listed, older := strings.CutPrefix(step, "older: ")
			body = planResponse(strings.TrimPrefix(listed, "none"), nil)
			snap, err := plans().Fetch(t.Context(), api, "", last)
			if err != nil {
				t.Fatal(err)
			}
			if !older {
				last = snap
			}
			var texts []string
			for _, e := range snap.Events {
				texts = append(texts, e.Message+" "+e.Keys[0][1])
			}
			got = append(got, strings.Join(texts, ", "))
		}
		simtest.AssertEqual(t, steps, strings.Join(got, "; "), want)
	}
}

// TestEventsOfAnotherToken has another token, whose servers may be those of another provider
// account.
func TestEventsOfAnotherToken(t *testing.T) {
	f := newFetchTest(t, servers())
	f.account.Servers = []simulator.Object{{"id": "srv_1", "status": "active"}}
	f.accounts[simtest.LabToken].Servers = []simulator.Object{{"id": "srv_2", "status": "active"}}
	for _, token := range []string{simtest.MainToken, simtest.LabToken, simtest.LabToken} {
		f.token = token
		snap, err := f.do(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, "events", eventTexts(snap.Events), []string{})
	}
}

// TestMissingComponents has responses, half an hour apart, of which some lack a component.
func TestMissingComponents(t *testing.T) {
	api := newFakeAPI()
	fetch := newFetcher(t, status())
	var got [][]Component
	for _, components := range []string{`"ipmi":"outage","network":"operational"`, `"network":"operational"`, `"network":"operational"`, `"network":"operational"`} {
		api.body = func(url.Values) []byte {
			return []byte(`{"data":{"overall":"operational","locations":{"fra":{"components":{` + components + `}}}}}`)
		}
		snap, err := fetch(t.Context(), api)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, snap.Missing)
		api.response.Received = api.response.Received.Add(30 * time.Minute)
	}
	simtest.AssertEqual(t, "missing", got, [][]Component{nil, {{"fra", "ipmi"}}, nil, nil})
}

// TestServerReturns: unlike a plan, a server that returns is added again at once.
func TestServerReturns(t *testing.T) {
	f := newFetchTest(t, servers())
	one, two := simulator.Object{"id": "srv_1", "status": "active"}, simulator.Object{"id": "srv_2", "status": "active"}
	for i, want := range [][]string{{}, {"server removed: server=srv_2 hostname="}, {"server added: server=srv_2 hostname="}} {
		f.account.Servers = [][]simulator.Object{{one, two}, {one}, {one, two}}[i]
		snap, err := f.do(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		simtest.AssertEqual(t, "events", eventTexts(snap.Events), want)
	}
}
