package collector

import (
	"fmt"
	"slices"
	"testing"

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
				return eventTexts(snap.history.Events)
			}
			simtest.AssertEqual(t, "first sight", fetch(), []string{})
			simtest.AssertEqual(t, "no change", fetch(), []string{})
			f.Change(c.change)
			simtest.AssertEqual(t, "change", fetch(), c.want)
			simtest.AssertEqual(t, "afterwards", fetch(), []string{})
		})
	}
}
