package simulator

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// ExampleAccount returns a realistic account: servers of which one is suspended,
// top-ups in all six states, transactions with consistent balances, saved
// configurations and SSH keys. Its ids are derived from the name; those of two
// names are distinct.
func ExampleAccount(name string, now time.Time) *Account {
	opened := now.AddDate(0, -14, 0)
	a := &Account{
		Account: Object{
			"id": makeID("acc", name), "email": name + "@customer.example", "name": name,
			"balance": Object{"usd": 0.0}, "two_factor": true, "created_at": stamp(opened),
		},
		Configurations: exampleConfigurations(name, now),
		SSHKeys:        exampleKeys(name, opened),
		Servers:        exampleServers(name, 5, now),
	}
	a.Servers[len(a.Servers)-1]["status"] = "suspended"
	a.addHistory(name, opened)
	a.addOpenTopups(name, now)
	slices.SortStableFunc(a.Topups, func(x, y Object) int { return cmp.Compare(Text(y, "created_at"), Text(x, "created_at")) })
	return a
}

// addHistory adds renewals of the servers for three months, with a top-up before
// each one that the balance does not cover.
func (a *Account) addHistory(name string, opened time.Time) {
	topup := func(amount int, at time.Time) {
		t := newTopup(makeID("tu", name, len(a.Topups)), amount, coins()[len(a.Topups)%2], at.Add(-time.Hour))
		a.Topups = append(a.Topups, t)
		a.credit(t, at.Add(-30*time.Minute))
	}
	topup(50_00, opened.Add(2*time.Hour))
	firstID := 1000 + int(digest(name)[0])*1000 + int(digest(name)[1])
	a.Transactions[0]["id"] = firstID

	renewals := map[time.Time][]Object{}
	for _, s := range a.Servers {
		next, _ := time.Parse(time.DateOnly, Text(s, "renews_at"))
		for months := range 3 {
			at := next.AddDate(0, -1-months, 0)
			renewals[at] = append(renewals[at], s)
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(renewals), time.Time.Compare) {
		for _, s := range renewals[at] {
			price := cents(s, "price", "monthly", "usd")
			for a.balance() < price {
				topup(300_00, at)
			}
			a.addTransaction("renewal", -price, "Renewal of "+Text(s, "hostname"), nil, at)
		}
	}
}

// addOpenTopups adds a top-up in each state except paid.
func (a *Account) addOpenTopups(name string, now time.Time) {
	add := func(amount int, coin coin, age time.Duration) Object {
		t := newTopup(makeID("tu", name, len(a.Topups)), amount, coin, now.Add(-age))
		a.Topups = append(a.Topups, t)
		return t
	}
	btc, usdt := coins()[0], coins()[1]
	closeTopup(add(100_00, btc, 40*24*time.Hour), "expired")
	closeTopup(add(75_00, usdt, 19*24*time.Hour), "canceled")
	failed := add(50_00, usdt, 6*24*time.Hour)
	confirmTopup(failed, 1)
	closeTopup(failed, "failed")
	confirmTopup(add(150_00, btc, 25*time.Minute), 1)
	add(100_00, usdt, 3*time.Minute)
}

// Servers returns n realistic servers, one in fifty of them suspended, that renew
// within the next 30 days.
func Servers(n int, now time.Time) []Object { return exampleServers("fleet", n, now) }

func exampleServers(owner string, n int, now time.Time) []Object {
	c := newCatalog()
	plans, systems := c.Plans[:9], c.OS
	first := int(digest(owner)[0])
	list := make([]Object, n)
	for i := range list {
		plan := plans[(first+2*i)%len(plans)]
		places := At(plan, "availability", "locations").([]any)
		status := "active"
		if i%50 == 49 {
			status = "suspended"
		}
		address := first<<8 + i
		list[i] = Object{
			"id": makeID("srv", owner, i), "plan": plan["id"], "name": plan["name"],
			"location": places[(first+i)%len(places)], "os": systems[i%len(systems)]["id"],
			"hostname": fmt.Sprintf("node-%d.%s.example", i+1, owner),
			// 198.18.0.0/15 is reserved for benchmarks.
			"ipv4":       fmt.Sprintf("198.%d.%d.%d", 18+address>>16&1, address>>8&255, address&255),
			"status":     status,
			"price":      Object{"monthly": Object{"usd": At(plan, "price", "monthly", "usd")}},
			"renews_at":  date(now.AddDate(0, 0, 2+i*28/n)),
			"created_at": stamp(now.AddDate(0, 0, -100-(37*i)%300)),
		}
	}
	return list
}

// Transactions returns n transactions with consistent balances, newest first.
func Transactions(n int, now time.Time) []Object {
	list := make([]Object, n)
	balance := 0
	for id := 1; id <= n; id++ {
		kind, amount, description := "renewal", -(20_00 + (id*977)%80_00), fmt.Sprintf("Renewal of node-%d.fleet.example", id%20+1)
		var topup any
		switch id % 6 {
		case 1:
			kind, amount, description, topup = "topup", 500_00, "Top-up with BTC", makeID("tu", "ledger", id)
		case 2:
			kind, amount, description, topup = "bonus", 25_00, "Bonus of 5 %", makeID("tu", "ledger", id-1)
		}
		balance += amount
		list[n-id] = transaction(id, kind, amount, balance, description, topup, now.Add(-time.Duration(n-id+1)*time.Hour))
	}
	return list
}

// Topups returns n closed top-ups, newest first: most are paid, the others
// expired, failed or canceled.
func Topups(n int, now time.Time) []Object {
	list := make([]Object, n)
	for i := range list {
		created := now.Add(-time.Duration(i+1) * 6 * time.Hour)
		list[i] = newTopup(makeID("tu", "history", n-i), (25+(i*37)%200)*100, coins()[i%2], created)
		if kind := i % 10; kind < 7 {
			payTopup(list[i], created.Add(12*time.Minute))
		} else {
			closeTopup(list[i], []string{"expired", "failed", "canceled"}[kind-7])
		}
	}
	return list
}

func exampleConfigurations(owner string, now time.Time) []Object {
	c := newCatalog()
	for i, o := range c.Configurations {
		plan := find(c.Plans, hasID(Text(o, "plan")))
		id := makeID("cfg", owner, i)
		o["id"], o["hostname"] = id, fmt.Sprintf("plan-%d.%s.example", i+1, owner)
		o["in_stock"], o["created_at"] = inStock(plan), stamp(now.AddDate(0, 0, -10*(i+1)))
		o["links"] = Object{"order": site + "/order?configuration=" + id}
	}
	return c.Configurations
}

func exampleKeys(owner string, opened time.Time) []Object {
	var list []Object
	for i, name := range []string{"laptop", "deploy"} {
		sum := digest(owner, name)
		key := base64.RawStdEncoding.EncodeToString(sum[:])
		list = append(list, Object{
			"id": makeID("key", owner, i), "name": name, "type": "ssh-ed25519", "fingerprint": "SHA256:" + key,
			"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + key + " " + name + "@" + owner,
			"created_at": stamp(opened.AddDate(0, 0, i)),
		})
	}
	return list
}

func digest(parts ...any) [sha256.Size]byte { return sha256.Sum256([]byte(fmt.Sprintln(parts...))) }

// makeID returns an id that is derived from its parts.
func makeID(kind string, parts ...any) string {
	sum := digest(append([]any{kind}, parts...)...)
	return kind + "_" + hex.EncodeToString(sum[:8])
}
