package collector

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// listed returns the only plan of a response: id, stock and price in dollars. Nil is unknown.
func listed(id string, stock, usd any) simulator.Object {
	return simulator.Object{
		"id": id, "availability": simulator.Object{"in_stock": stock, "locations": []string{"fra"}},
		"price": simulator.Object{"monthly": simulator.Object{"usd": usd}},
	}
}

// inStock and soldOut return such plans.
func inStock(id string) simulator.Object { return listed(id, true, 50) }
func soldOut() simulator.Object          { return listed("a", false, 50) } // plan a

// catalog is one response of /plans.
type catalog []simulator.Object

// plansOf decodes a response that was received at a time.
func plansOf(t *testing.T, c catalog, at time.Time) Snapshot {
	t.Helper()
	if c == nil {
		c = catalog{}
	}
	s := newBodyTest(t, plans(), simtest.Encode(t, simulator.Object{"data": c})).mustFetch()
	s.Made = at
	return s
}

// minutes is a response, and how many minutes after the former one it comes.
type minutes struct {
	n int
	catalog
}

// TestHistory has responses with plans. It compares the events of each, and after the last one
// the restocks and sellouts of plan a, and the minutes in which it last came in stock and sold
// out.
func TestHistory(t *testing.T) {
	const never = -1
	all := catalog{inStock("a"), inStock("b")}
	noID := simulator.Object{"id": 5}
	for _, c := range []struct {
		name      string
		responses []minutes
		events    []string
		want      []float64
	}{
		{"no change", []minutes{{0, all}, {1, all}}, []string{"", ""}, []float64{0, 0, never, never}},
		{
			"restocks and sellouts",
			[]minutes{{0, catalog{soldOut()}}, {1, catalog{inStock("a")}}, {1, catalog{soldOut()}}, {1, catalog{inStock("a")}}},
			[]string{"", "plan in stock a", "plan sold out a", "plan in stock a"},
			[]float64{2, 1, 3, 2},
		},
		{"returns as it was", []minutes{{0, all}, {1, all[1:]}, {1, all}}, []string{"", "plan removed a", ""}, []float64{0, 0, never, never}},
		{"returns sold out", []minutes{{0, all}, {1, all[1:]}, {1, catalog{soldOut()}}}, []string{"", "plan removed a", "plan sold out a, plan removed b"}, []float64{0, 1, never, 2}},
		{
			"returns after an hour",
			[]minutes{{0, catalog{soldOut()}}, {1, catalog{inStock("a")}}, {1, nil}, {59, catalog{soldOut()}}},
			[]string{"", "plan in stock a", "plan removed a", "plan added a"},
			[]float64{0, 0, never, never},
		},
		{"nothing is known for hours", []minutes{{0, catalog{soldOut()}}, {300, catalog{inStock("a")}}}, []string{"", "plan in stock a"}, []float64{1, 0, 300, never}},
		{"added", []minutes{{0, nil}, {1, catalog{inStock("a")}}}, []string{"", "plan added a"}, []float64{0, 0, never, never}},
		{
			"stock and price are not known",
			[]minutes{{0, catalog{soldOut()}}, {1, catalog{listed("a", nil, nil)}}, {1, catalog{listed("a", true, 60)}}},
			[]string{"", "", "plan in stock a, plan price changed a"},
			[]float64{1, 0, 2, never},
		},
		{"an item without id may be plan a", []minutes{{0, all}, {1, catalog{all[1], noID}}, {1, all}}, []string{"", "", ""}, []float64{0, 0, never, never}},
	} {
		t.Run(c.name, func(t *testing.T) {
			history, resource, now := History{}, plans(), today
			var events []string
			for _, r := range c.responses {
				now = now.Add(time.Duration(r.n) * time.Minute)
				history = history.Step(&resource, "", plansOf(t, r.catalog, now), now)
				var texts []string
				for _, e := range history.Events {
					texts = append(texts, e.Message+" "+e.Keys[0][1])
				}
				events = append(events, strings.Join(texts, ", "))
			}
			simtest.AssertEqual(t, "events", events, c.events)
			values, got := exposed(t, history.Metrics), []float64{}
			for _, d := range []*metric.Definition{planStock.restocks, planStock.sellouts, planStock.lastRestock, planStock.lastSellout} {
				value, found := values[d.Name+`{plan="a"}`]
				switch {
				case !found:
					value = never
				case value > 1e9:
					value = (value - float64(today.Unix())) / 60
				}
				got = append(got, value)
			}
			simtest.AssertEqual(t, "restocks, sellouts, last restock, last sellout", got, c.want)
		})
	}
}

// TestHistoryForgets has a catalog with other plans in each response, as an auction has.
func TestHistoryForgets(t *testing.T) {
	history, watched, resource := History{}, Watched{Watch: Watch{Name: "w", GPU: ptr(false)}}, plans()
	for i := range 300 {
		now := today.Add(time.Duration(i) * time.Minute)
		s := plansOf(t, catalog{inStock(fmt.Sprint("plan ", i))}, now)
		history = history.Step(&resource, "", s, now)
		watched = watched.Step(Known{Data: s.Data}, now)
	}
	simtest.AssertEqual(t, "plans that are remembered", []int{len(history.records), len(watched.history.records)}, []int{60, 60})

	many := make(map[string]record, maxRemembered)
	for i := range maxRemembered {
		many[fmt.Sprint("plan ", i)] = record{item: item{kind: planEvents}, listed: today}
	}
	history = History{records: many}.Step(&resource, "", Snapshot{items: []item{{kind: planEvents, id: "new"}}}, today)
	watched.history.records = many
	watched = watched.Step(Known{Data: plansOf(t, catalog{inStock("new")}, today).Data}, today)
	simtest.AssertEqual(t, "of many", []int{len(history.records), len(watched.history.records)}, []int{maxRemembered, maxRemembered})
}

// TestHistoryOfAnotherToken has another token, whose items may be those of another provider
// account: nothing has changed.
func TestHistoryOfAnotherToken(t *testing.T) {
	f := newFetchTest(t, configurations())
	saved := func(stock bool) []simulator.Object {
		return []simulator.Object{{"id": "cfg_1", "plan": "p", "location": "fra", "in_stock": stock}}
	}
	f.account.Configurations, f.lab.Configurations = saved(false), saved(true)
	for _, token := range []string{simtest.MainToken, simtest.LabToken, simtest.LabToken} {
		f.token = token
		f.mustFetch()
		restocks := exposed(t, f.history.Metrics)[simtest.Series(configurationStock.restocks.Name, "account", "main", "configuration", "cfg_1", "location", "fra", "plan", "p")]
		simtest.AssertEqual(t, "events and restocks", []any{eventTexts(f.history.Events), restocks}, []any{[]string{}, 0.0})
	}
}

// TestSoldOut waits for the restock of an item while it is not known whether it is in stock. In
// another location, it is another one.
func TestSoldOut(t *testing.T) {
	f := newFetchTest(t, configurations())
	var got []bool
	for _, c := range []struct {
		location string
		stock    any
	}{{"fra", nil}, {"fra", true}, {"fra", nil}, {"fra", false}, {"fra", nil}, {"nyc", nil}, {"nyc", true}} {
		f.account.Configurations = []simulator.Object{{"id": "cfg_1", "plan": "p", "location": c.location, "in_stock": c.stock}}
		f.mustFetch()
		got = append(got, f.history.SoldOut)
	}
	simtest.AssertEqual(t, "sold out", got, []bool{false, false, false, true, true, false, false})
}

// TestMissingComponents has responses, half an hour apart, of which some lack a component.
func TestMissingComponents(t *testing.T) {
	f := newBodyTest(t, status(), nil)
	var got [][]Component
	for _, components := range []simulator.Object{{"ipmi": "outage", "network": "operational"}, {"network": "operational"}, {"network": "operational"}} {
		body := simtest.Encode(t, simulator.Object{"data": simulator.Object{"locations": simulator.Object{"fra": simulator.Object{"components": components}}}})
		f.body = func(url.Values) []byte { return body }
		f.mustFetch()
		got = append(got, f.history.Missing)
		f.response.Received = f.response.Received.Add(30 * time.Minute)
	}
	simtest.AssertEqual(t, "missing", got, [][]Component{nil, {{"fra", "ipmi"}}, nil})
}

// TestServerReturns: unlike a plan, a server that returns is added again at once.
func TestServerReturns(t *testing.T) {
	f := newFetchTest(t, servers())
	one, two := simulator.Object{"id": "srv_1", "status": "active"}, simulator.Object{"id": "srv_2", "status": "active"}
	for i, want := range [][]string{{}, {"server removed: server=srv_2 hostname="}, {"server added: server=srv_2 hostname="}} {
		f.account.Servers = [][]simulator.Object{{one, two}, {one}, {one, two}}[i]
		f.mustFetch()
		simtest.AssertEqual(t, "events", eventTexts(f.history.Events), want)
	}
}

// TestSSHKeysChanged has keys that come, go or change. One whose fingerprint or type is not
// understood did not change.
func TestSSHKeysChanged(t *testing.T) {
	f := newFetchTest(t, sshKeys())
	key := func(id string, fingerprint any) simulator.Object {
		return simulator.Object{"id": id, "name": "laptop", "type": "ssh-ed25519", "fingerprint": fingerprint}
	}
	for i, c := range []struct {
		keys    []simulator.Object
		events  []string
		changed float64 // number of the response; negative for never
	}{
		{[]simulator.Object{key("k1", nil)}, []string{}, -1},
		{[]simulator.Object{key("k1", "a")}, []string{}, -1},
		{[]simulator.Object{key("k1", nil)}, []string{}, -1},
		{[]simulator.Object{{"id": "k1", "name": "laptop", "type": 7, "fingerprint": "a"}}, []string{}, -1},
		{[]simulator.Object{key("k1", "a")}, []string{}, -1},
		{[]simulator.Object{key("k1", "a"), key("k2", "b")}, []string{"ssh key added: ssh_key=k2 name=laptop"}, 5},
		{[]simulator.Object{key("k1", "a"), key("k2", "b")}, []string{}, 5},
		{[]simulator.Object{key("k1", "c"), key("k2", "b")}, []string{"ssh key removed: ssh_key=k1 name=laptop", "ssh key added: ssh_key=k1 name=laptop"}, 7},
		{nil, []string{"ssh key removed: ssh_key=k1 name=laptop", "ssh key removed: ssh_key=k2 name=laptop"}, 8},
	} {
		f.account.SSHKeys = c.keys
		f.response = rentalapi.Response{Received: today.Add(time.Duration(i) * time.Second)}
		f.mustFetch()
		changed, found := exposed(t, f.history.Metrics)[simtest.Series(sshKeysChanged.Name, "account", "main")]
		if !found {
			changed = float64(today.Unix()) - 1
		}
		simtest.AssertEqual(t, fmt.Sprint("response ", i), []any{eventTexts(f.history.Events), changed - float64(today.Unix())}, []any{c.events, c.changed})
	}
}

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
				f.mustFetch()
				return eventTexts(f.history.Events)
			}
			simtest.AssertEqual(t, "first sight", fetch(), []string{})
			simtest.AssertEqual(t, "no change", fetch(), []string{})
			f.Change(c.change)
			simtest.AssertEqual(t, "change", fetch(), c.want)
			simtest.AssertEqual(t, "afterwards", fetch(), []string{})
		})
	}
}
