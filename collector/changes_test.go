package collector

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
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
	s := newBodyTest(t, plans, simtest.Encode(t, simulator.Object{"data": c})).mustFetch()
	s.MadeAt = at
	return s
}

// moment is a response of a minute, or before it the end of the data's max age.
type moment struct {
	minute  int
	catalog catalog
	expired bool
}

// TestChanges has responses with plans. It compares the events of each, and after the last one
// the metrics of plan a, with times as minutes.
func TestChanges(t *testing.T) {
	type values map[string]float64 // counters of 0 are left out
	all := catalog{inStock("a"), inStock("b")}
	without := all[1:]
	noID := simulator.Object{"id": 5}
	at := func(usd any) catalog { return catalog{listed("a", true, usd)} }
	for _, c := range []struct {
		name    string
		moments []moment
		events  []string
		want    values
	}{
		{"no change", []moment{{0, all, false}, {1, all, false}}, []string{"", ""}, values{}},
		{
			"restocks and sellouts",
			[]moment{{0, catalog{soldOut()}, false}, {1, catalog{inStock("a")}, false}, {2, catalog{soldOut()}, false}, {3, catalog{inStock("a")}, false}},
			[]string{"", "plan in stock a", "plan sold out a", "plan in stock a"},
			values{"restocks_total": 2, "sellouts_total": 1, "last_restock_timestamp_seconds": 3, "last_sellout_timestamp_seconds": 2},
		},
		{"removed", []moment{{0, all, false}, {1, without, false}}, []string{"", "plan removed a"}, values{"removed_timestamp_seconds": 1}},
		{"removed for an hour", []moment{{0, all, false}, {1, without, false}, {60, without, false}}, []string{"", "plan removed a", ""}, values{"removed_timestamp_seconds": 1}},
		{"forgotten", []moment{{0, all, false}, {1, without, false}, {61, without, false}}, []string{"", "plan removed a", ""}, values{}},
		{"removed at a long interval", []moment{{0, all, false}, {120, without, false}}, []string{"", "plan removed a"}, values{"removed_timestamp_seconds": 120}},
		{"returns as it was", []moment{{0, all, false}, {1, without, false}, {2, all, false}}, []string{"", "plan removed a", ""}, values{}},
		{
			"returns sold out",
			[]moment{{0, all, false}, {1, without, false}, {2, catalog{soldOut()}, false}},
			[]string{"", "plan removed a", "plan sold out a, plan removed b"},
			values{"sellouts_total": 1, "last_sellout_timestamp_seconds": 2},
		},
		{
			"returns after an hour",
			[]moment{{0, catalog{soldOut()}, false}, {1, catalog{inStock("a")}, false}, {2, nil, false}, {61, catalog{soldOut()}, false}},
			[]string{"", "plan in stock a", "plan removed a", "plan added a"},
			values{"added_timestamp_seconds": 61},
		},
		{"added in stock", []moment{{0, nil, false}, {1, catalog{inStock("a")}, false}}, []string{"", "plan added a"}, values{"added_timestamp_seconds": 1}},
		{
			"prices",
			[]moment{{0, at(50), false}, {1, at(60), false}, {2, at(nil), false}, {3, at(60), false}, {4, at(40), false}},
			[]string{"", "plan price changed a", "", "", "plan price changed a"},
			values{"last_price_change_timestamp_seconds": 4, "previous_price_usd_per_month": 60},
		},
		{
			"stock and price are not known",
			[]moment{{0, catalog{soldOut()}, false}, {1, catalog{listed("a", nil, nil)}, false}, {2, at(60), false}},
			[]string{"", "", "plan in stock a, plan price changed a"},
			values{"restocks_total": 1, "last_restock_timestamp_seconds": 2, "last_price_change_timestamp_seconds": 2, "previous_price_usd_per_month": 50},
		},
		{"an item without id may be plan a", []moment{{0, all, false}, {1, catalog{all[1], noID}, false}, {2, all, false}}, []string{"", "", ""}, values{}},

		// After expired data nothing has changed.
		{
			"expired",
			[]moment{{0, catalog{soldOut()}, false}, {1, at(50), false}, {300, catalog{listed("a", false, 70), inStock("b")}, true}, {301, catalog{listed("a", false, 70), inStock("b")}, false}},
			[]string{"", "plan in stock a", "", ""},
			values{"restocks_total": 1, "last_restock_timestamp_seconds": 1},
		},
		{"expired and gone", []moment{{0, all, false}, {10, without, true}, {11, without, false}}, []string{"", "", ""}, values{}},
		{"expired, gone and back", []moment{{0, all, false}, {10, without, true}, {11, all, false}}, []string{"", "", "plan added a"}, values{"added_timestamp_seconds": 11}},
		{"removed, expired and back", []moment{{0, all, false}, {1, without, false}, {10, without, true}, {11, all, false}}, []string{"", "plan removed a", "", ""}, values{}},
		{"expired, and without id", []moment{{0, all, false}, {10, catalog{all[1], noID}, true}, {11, without, false}}, []string{"", "", ""}, values{}},
		{"removed and then expired", []moment{{0, all, false}, {1, without, false}, {20, without, true}}, []string{"", "plan removed a", ""}, values{"removed_timestamp_seconds": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var changes Changes
			var events []string
			for _, m := range c.moments {
				if m.expired {
					changes.Forget()
					changes.Forget()
				}
				now := today.Add(time.Duration(m.minute) * time.Minute)
				var texts []string
				s := plansOf(t, m.catalog, now)
				for _, e := range changes.Step(&plans, "", &s, now) {
					texts = append(texts, e.Message+" "+e.Keys[0][1])
				}
				events = append(events, strings.Join(texts, ", "))
			}
			simtest.AssertEqual(t, "events", events, c.events)
			got := values{}
			for series, value := range exposed(t, changes.Metrics) {
				name, isOfA := strings.CutSuffix(series, `{plan="a"}`)
				if strings.HasSuffix(name, "_timestamp_seconds") {
					value = (value - float64(today.Unix())) / 60
				}
				if isOfA && value != 0 {
					got[strings.TrimPrefix(name, "server_rental_plan_")] = value
				}
			}
			simtest.AssertEqual(t, "metrics", got, c.want)
		})
	}
}

// TestChangesForgets has a catalog with other plans in each response, as an auction has.
func TestChangesForgets(t *testing.T) {
	changes, watched := Changes{}, Watched{Watch: Watch{Name: "w", GPU: ptr(false)}}
	for i := range 300 {
		now := today.Add(time.Duration(i) * time.Minute)
		s := plansOf(t, catalog{inStock(fmt.Sprint("plan ", i))}, now)
		changes.Step(&plans, "", &s, now)
		watched.step(s.Data, now)
	}
	simtest.AssertEqual(t, "plans that are remembered", []int{len(changes.records), len(watched.changes.records)}, []int{61, 61})

	itemsOf := func(n int, text string) (items []item) {
		for i := range n {
			id := fmt.Sprint(text, i)
			items = append(items, item{id: id, labels: []string{id}, keys: [][2]string{{"name", text}}})
		}
		return items
	}
	for _, text := range []string{"p", strings.Repeat("p", 2_000)} {
		for _, c := range []*Changes{&changes, &watched.changes} {
			*c = Changes{}
			c.Step(&plans, "", &Snapshot{items: itemsOf(6_000, text)}, today)
		}
		changes.Step(&plans, "", &Snapshot{}, today)
		watched.step(plansOf(t, nil, today).Data, today)
		for most, n := range map[int]int{maxKept: len(changes.records), watchChanges.remembers: len(watched.changes.records)} {
			if size := n * (recordBytes + 2*len(text)); size > most || size < most*9/10 {
				t.Errorf("got %d plans that are remembered, want those that take %d bytes", n, most)
			}
		}
	}
}

// TestSoldOut waits for the restock of an item while it is not known whether it is in stock. In
// another location, it is another one.
func TestSoldOut(t *testing.T) {
	f := newFetchTest(t, configurations, simulator.Account{})
	var got []bool
	for _, c := range []struct {
		location string
		stock    any
	}{{"fra", nil}, {"fra", true}, {"fra", nil}, {"fra", false}, {"fra", nil}, {"nyc", nil}, {"nyc", true}} {
		f.account.Configurations = []simulator.Object{{"id": "cfg_1", "plan": "p", "location": c.location, "in_stock": c.stock}}
		f.mustFetch()
		got = append(got, f.changes.SoldOut)
	}
	simtest.AssertEqual(t, "sold out", got, []bool{false, false, false, true, true, false, false})
}

// TestAccountChanges has items of an account that come, go or change, in responses of one minute after
// the other. It compares the events of each response and the metrics of the changes: their names
// without namespace, and times as minutes.
func TestAccountChanges(t *testing.T) {
	type values map[string]float64
	type response struct {
		items  []simulator.Object
		events []string
		want   values
	}
	server := func(id, status string, usd any) simulator.Object {
		return simulator.Object{"id": id, "status": status, "price": simulator.Object{"monthly": simulator.Object{"usd": usd}}}
	}
	first, second := server("srv_1", "active", 10.0), server("srv_2", "active", 20.0)
	rebuilt := func(hostname string, created any, usd float64) []simulator.Object {
		o := server("srv_1", "active", usd)
		o["hostname"], o["created_at"] = hostname, created
		return []simulator.Object{o}
	}
	serverValues := func(added, removed float64, others values) values {
		v := values{"servers_last_added_timestamp_seconds": added, "servers_last_removed_timestamp_seconds": removed}
		maps.Copy(v, others)
		return v
	}
	raised := values{"server_last_price_change_timestamp_seconds": 12, "server_previous_price_usd_per_month": 10}
	topup := func(status string) []simulator.Object {
		return []simulator.Object{oneTopup("new", status), oneTopup("old", "failed"), oneTopup("paid", "paid")}
	}
	credited := func(status string, confirmations, usd any) []simulator.Object {
		list := topup(status)
		list[0]["confirmations"], list[0]["credited"] = confirmations, usd
		if usd != nil {
			list[0]["credited"] = simulator.Object{"usd": usd, "bonus_usd": 7}
		}
		return list
	}
	topupChanged := func(before, after string) []string {
		return []string{"top-up status changed: topup=new usd=10 before=" + before + " after=" + after}
	}
	owner := func(id string, twoFactor any) []simulator.Object {
		return []simulator.Object{{"id": id, "balance": simulator.Object{"usd": 5}, "two_factor": twoFactor}}
	}
	network := func(state string) []simulator.Object {
		components := simulator.Object{"components": simulator.Object{"network": state, "power": "operational"}}
		return []simulator.Object{{"locations": simulator.Object{"fra": components}}}
	}
	saved := func(plan, stock, usd any) []simulator.Object {
		return []simulator.Object{{"id": "c", "plan": plan, "location": "fra", "in_stock": stock, "price": simulator.Object{"monthly": simulator.Object{"usd": usd}}}}
	}
	stay := values{"configuration_restocks_total": 0, "configuration_sellouts_total": 0}
	with := func(v values, name string, value float64) values {
		v = maps.Clone(v)
		v[name] = value
		return v
	}
	repriced := with(with(stay, "configuration_previous_price_usd_per_month", 50), "configuration_last_price_change_timestamp_seconds", 1)
	gone := with(repriced, "configurations_last_removed_timestamp_seconds", 4)
	soldOut := with(with(gone, "configuration_sellouts_total", 1), "configuration_last_sellout_timestamp_seconds", 5)
	restocked := with(with(soldOut, "configuration_restocks_total", 1), "configuration_last_restock_timestamp_seconds", 6)
	failed := func(minute float64) values { return values{"topups_last_failed_timestamp_seconds": minute} }
	key := func(id string, fingerprint any) simulator.Object {
		return simulator.Object{"id": id, "name": "laptop", "type": "ssh-ed25519", "fingerprint": fingerprint}
	}
	keysChanged := func(minute float64) values { return values{"ssh_keys_changed_timestamp_seconds": minute} }
	for _, c := range []struct {
		resource  Resource
		responses []response
	}{
		// A server that is missing from one response only did not go, and one that is canceled goes once.
		{servers, []response{
			{[]simulator.Object{first, second}, nil, nil},
			{[]simulator.Object{first}, nil, nil},
			{[]simulator.Object{first, second}, nil, nil},
			{[]simulator.Object{first}, nil, nil},
			{[]simulator.Object{first, {}}, nil, nil}, // srv_2 may be the one without id
			{[]simulator.Object{first}, []string{"server removed: server=srv_2 hostname="}, values{"servers_last_removed_timestamp_seconds": 5}},
			{[]simulator.Object{first, second}, []string{"server added: server=srv_2 hostname="}, serverValues(6, 5, nil)},
			{[]simulator.Object{first, server("srv_2", "Canceled", 20.0)}, []string{"server status changed: server=srv_2 hostname= before=active after=Canceled"}, serverValues(6, 7, nil)},
			{[]simulator.Object{first}, nil, serverValues(6, 7, nil)},
			{[]simulator.Object{first}, []string{"server removed: server=srv_2 hostname="}, serverValues(6, 7, nil)},
			{[]simulator.Object{first, server("srv_3", "expired", 1.0)}, []string{"server added: server=srv_3 hostname="}, serverValues(6, 7, nil)},
			{[]simulator.Object{first, server("srv_3", "active", 1.0)}, []string{"server status changed: server=srv_3 hostname= before=expired after=active"}, serverValues(11, 7, nil)},
			{[]simulator.Object{server("srv_1", "suspended", 11.5)}, []string{"server status changed: server=srv_1 hostname= before=active after=suspended"}, serverValues(11, 7, raised)},
			{[]simulator.Object{server("srv_1", "suspended", nil)}, []string{"server removed: server=srv_3 hostname="}, serverValues(11, 13, raised)},
		}},
		// A status that becomes known together with another price did not change.
		{servers, []response{
			{[]simulator.Object{server("srv_1", "", 10.0)}, nil, nil},
			{[]simulator.Object{server("srv_1", "canceled", 20.0)}, nil, values{"server_last_price_change_timestamp_seconds": 1, "server_previous_price_usd_per_month": 10}},
		}},
		// The id of a server that stands for another one: the other one is added, without a price before.
		{servers, []response{
			{rebuilt("old", "2024-01-01T00:00:00Z", 50), nil, nil},
			{rebuilt("renamed", "2024-01-01", 50), nil, nil},
			{rebuilt("renamed", nil, 50), nil, nil},
			{rebuilt("other", "2026-02-28T00:00:00Z", 99), []string{"server removed: server=srv_1 hostname=renamed", "server added: server=srv_1 hostname=other"}, serverValues(3, 3, nil)},
		}},
		{topups, []response{
			{topup("pending"), nil, nil},
			{topup("confirming"), topupChanged("pending", "confirming"), nil},
			{topup("confirming")[1:], nil, nil},
			{topup("Failed"), topupChanged("confirming", "failed"), failed(3)},
			{topup("Failed"), nil, failed(3)},
			{topup("paid"), topupChanged("failed", "paid"), failed(3)},
			{topup("failed"), topupChanged("paid", "failed"), failed(6)},
		}},
		// Money that was seen and not credited. Without any, an end is none of it.
		{topups, []response{
			{topup("confirming"), nil, nil},
			{topup("expired"), topupChanged("confirming", "expired"), failed(1)},
			{topup("canceled"), topupChanged("expired", "canceled"), failed(1)},
			{topup("pending"), topupChanged("canceled", "pending"), failed(1)},
			{topup("Expired"), topupChanged("pending", "expired"), failed(1)},
			{topup("CONFIRMING"), topupChanged("expired", "confirming"), failed(1)},
			{topup("odd"), nil, failed(1)},
			{topup("Canceled"), topupChanged("confirming", "canceled"), failed(7)},
			{topup("confirming"), topupChanged("canceled", "confirming"), failed(7)},
			{topup("pending"), topupChanged("confirming", "pending"), failed(7)}, // it was not seen after all
			{topup("expired"), topupChanged("pending", "expired"), failed(7)},
			{topup("pending"), topupChanged("expired", "pending"), failed(7)},
			{credited("expired", 1, nil), topupChanged("pending", "expired"), failed(12)},
		}},
		{topups, []response{
			{topup("pending"), nil, nil},
			{credited("paid", nil, 10), topupChanged("pending", "paid"), nil},
			{credited("pending", nil, nil), topupChanged("paid", "pending"), nil},
			{credited("paid", nil, nil), topupChanged("pending", "paid"), nil},
			{credited("paid", nil, 9.99), nil, failed(4)},
			{credited("paid", nil, 9.99), nil, failed(4)},
			{credited("paid", nil, 10), nil, failed(4)},
			{credited("confirming", nil, nil), topupChanged("paid", "confirming"), failed(4)},
			{credited("paid", nil, 4), topupChanged("confirming", "paid"), failed(8)},
		}},
		{account, []response{
			{owner("a", false), nil, nil},
			{owner("a", true), nil, nil},
			{owner("a", nil), nil, nil},
			{owner("a", false), []string{"two-factor authentication switched off:"}, values{"account_two_factor_off_timestamp_seconds": 3}},
			{owner("a", true), nil, values{"account_two_factor_off_timestamp_seconds": 3}},
			{owner("b", false), nil, values{"account_two_factor_off_timestamp_seconds": 3}},
		}},
		{status, []response{
			{network("operational"), nil, nil},
			{network("degraded"), []string{"component state changed: location=fra component=network before=operational after=degraded"}, nil},
			{network(""), nil, nil},
			{network("degraded"), nil, nil},
		}},
		// A configuration that is not understood in full is the same one. One of another place is not.
		{configurations, []response{
			{saved("p", true, 50), nil, stay},
			{saved("p", true, 80), []string{"configuration price changed: configuration=c plan=p location=fra before=50 after=80"}, repriced},
			{saved(nil, nil, nil), nil, repriced},
			{saved("p", true, 80), nil, repriced},
			{nil, []string{"configuration removed: configuration=c plan=p location=fra"}, gone},
			{saved("p", false, 80), []string{"configuration sold out: configuration=c plan=p location=fra"}, soldOut},
			{saved("p", true, 80), []string{"configuration in stock: configuration=c plan=p location=fra"}, restocked},
			{saved("q", true, 90), []string{"configuration removed: configuration=c plan=p location=fra"}, with(stay, "configurations_last_removed_timestamp_seconds", 7)},
		}},
		// A key whose fingerprint or type is not understood did not change.
		{sshKeys, []response{
			{[]simulator.Object{key("k1", nil)}, nil, nil},
			{[]simulator.Object{key("k1", "a")}, nil, nil},
			{[]simulator.Object{key("k1", nil)}, nil, nil},
			{[]simulator.Object{{"id": "k1", "name": "laptop", "type": 7, "fingerprint": "a"}}, nil, nil},
			{[]simulator.Object{key("k1", "a")}, nil, nil},
			{[]simulator.Object{key("k1", "a"), key("k2", "b")}, []string{"ssh key added: ssh_key=k2 name=laptop"}, keysChanged(5)},
			{[]simulator.Object{key("k1", "a"), key("k2", "b")}, nil, keysChanged(5)},
			{[]simulator.Object{key("k1", "c"), key("k2", "b")}, []string{"ssh key removed: ssh_key=k1 name=laptop", "ssh key added: ssh_key=k1 name=laptop"}, keysChanged(7)},
			{[]simulator.Object{{"id": "k1", "name": "laptop", "type": "ssh-rsa", "fingerprint": "c"}, key("k2", "b")}, nil, keysChanged(8)},
			{nil, []string{"ssh key removed: ssh_key=k1 name=laptop", "ssh key removed: ssh_key=k2 name=laptop"}, keysChanged(9)},
		}},
	} {
		f := newBodyTest(t, c.resource, nil)
		for i, r := range c.responses {
			what := fmt.Sprintf("%s: response %d", c.resource.Name, i)
			data := any(append([]simulator.Object{}, r.items...))
			if c.resource.Name == account.Name || c.resource.Name == status.Name {
				data = r.items[0]
			}
			f.body = simtest.Encode(t, simulator.Object{"data": data, "meta": simulator.Object{"total": len(r.items)}})
			f.response.Received = today.Add(time.Duration(i) * time.Minute)
			f.mustFetch()
			simtest.AssertEqual(t, what+": events", eventTexts(f.events), append([]string{}, r.events...))
			got := values{}
			for series, value := range exposed(t, f.changes.Metrics) {
				name, labels, _ := strings.Cut(strings.TrimPrefix(series, metric.Namespace), "{")
				if strings.HasSuffix(name, "_timestamp_seconds") {
					value = (value - float64(today.Unix())) / 60
				}
				got[name] = value
				if !regexp.MustCompile(`^account="main"(,server="srv_1"|,configuration="c",location="fra",plan="[pq]?")?}$`).MatchString(labels) {
					t.Errorf("%s: got labels of %s", what, series)
				}
			}
			want := values{}
			maps.Copy(want, r.want)
			simtest.AssertEqual(t, what+": metrics", got, want)
		}
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
