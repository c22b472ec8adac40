package simulator

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var cacheHeaders = []string{"Cache-Control", "Access-Control-Allow-Origin", "Content-Type", "Allow"}

func TestHeaders(t *testing.T) {
	base := serve(t, withMain(Options{}))
	public := func(age string) map[string]string {
		return map[string]string{"Cache-Control": "max-age=" + age, "Access-Control-Allow-Origin": "*", "Content-Type": "application/json"}
	}
	private := map[string]string{"Cache-Control": "no-store", "Content-Type": "application/json"}
	for path, want := range map[string]map[string]string{
		"/plans": public("60"), "/plans/epyc-9654": public("60"), "/locations": public("60"), "/locations/tyo": public("60"),
		"/os": public("60"), "/status": public("30"),
		"/account": private, "/topups": private, "/transactions": private, "/configurations": private,
		"/ssh-keys": private, "/servers": private,
	} {
		got := get(t, base+path, token)
		same(t, path+" status", got.Status, http.StatusOK)
		same(t, path+" headers", got.picked(cacheHeaders...), want)
	}
}

func TestErrors(t *testing.T) {
	base := serve(t, withMain(Options{}))
	type failed struct {
		Status      int
		Code, Allow string
	}
	notFound := failed{404, "not_found", ""}
	invalid := failed{400, "invalid_parameter", ""}
	wrongMethod := failed{405, "method_not_allowed", "GET"}
	for _, c := range []struct {
		method, path, token string
		want                failed
	}{
		{"GET", "/", "", notFound},
		{"GET", "/invoices", token, notFound},
		{"GET", "/plans/", "", notFound},
		{"GET", "/plans/epyc-1", "", notFound},
		{"GET", "/plans/epyc-9654/price", "", notFound},
		{"GET", "/plans/epyc-9654%2Fprice", "", notFound},
		{"GET", "/locations/par", "", notFound},
		{"GET", "/os/debian-13", "", notFound},
		{"GET", "/status/nyc", "", notFound},
		{"GET", "/account/x", token, notFound},
		{"GET", "/topups/x", token, notFound},
		{"GET", "/transactions/1", token, notFound},
		{"GET", "/ssh-keys/x", token, notFound},
		{"GET", "/servers/x", token, notFound},
		{"GET", "/../plans", "", notFound},

		{"POST", "/plans", "", wrongMethod},
		{"POST", "/account", "", wrongMethod},
		{"DELETE", "/servers/x", token, wrongMethod},
		{"PUT", "/os", token, wrongMethod},
		{"POST", "/servers/x/actions", token, notFound},

		{"GET", "/account", "", failed{401, "unauthorized", ""}},
		{"GET", "/servers/x", "", failed{401, "unauthorized", ""}},
		{"GET", "/account", "other", failed{401, "invalid_token", ""}},

		{"GET", "/plans?family=cheap", "", invalid},
		{"GET", "/plans?family=", "", invalid},
		{"GET", "/plans?location=par", "", invalid},
		{"GET", "/plans?in_stock=0", "", invalid},
		{"GET", "/plans?in_stock=yes", "", invalid},
		{"GET", "/plans?in_stock=1&in_stock=1", "", invalid},
		{"GET", "/plans?page=1", "", invalid},
		{"GET", "/plans?a;b", "", invalid},
		{"GET", "/plans/epyc-9654?family=enterprise", "", invalid},
		{"GET", "/locations?limit=1", "", invalid},
		{"GET", "/os?x", "", invalid},
		{"GET", "/status?x=1", "", invalid},
		{"GET", "/account?x=1", token, invalid},
		{"GET", "/topups?status=lost", token, invalid},
		{"GET", "/transactions?status=paid", token, invalid},
		{"GET", "/configurations?page=1", token, invalid},
		{"GET", "/ssh-keys?page=1", token, invalid},
		{"GET", "/servers?status=active", token, invalid},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			r := do(t, http.DefaultClient, c.method, base+c.path, c.token)
			o := r.object(t)
			same(t, "error", failed{r.Status, text(o, "error", "code"), r.Header.Get("Allow")}, c.want)
			same(t, "docs", at(o, "error", "docs"), any("https://rental.example/docs/api#errors"))
			if text(o, "error", "message") == "" || len(o) != 1 || len(o["error"].(Object)) != 3 {
				t.Errorf("body is %s, want code, message and docs", r.Body)
			}
		})
	}
}

func TestNothingOutsideThePrefix(t *testing.T) {
	base := serve(t, New(Options{Prefix: "/v9/"}))
	root := strings.TrimSuffix(base, "/api/v1")
	got := map[string]int{}
	for _, path := range []string{"/v9/plans", "/plans", "/api/v1/plans", "/v9plans", "/v9"} {
		got[path] = get(t, root+path, "").Status
	}
	same(t, "statuses", got, map[string]int{"/v9/plans": 200, "/plans": 404, "/api/v1/plans": 404, "/v9plans": 404, "/v9": 404})
}

func TestLists(t *testing.T) {
	s := withMain(Options{AccountLimit: -1})
	s.Change(func(w *World) { w.GeneratedAt = "2030-01-02T03:04:05Z" })
	base := serve(t, s)
	stamped := func(count, inStock float64) Object {
		return Object{"count": count, "in_stock": inStock, "generated_at": "2030-01-02T03:04:05Z"}
	}
	const all = "xeon-e-2236 ryzen-5-3600 xeon-e-2388g ryzen-5-7600 ryzen-7-9700x ryzen-9-9950x ryzen-9-7950x3d epyc-4464p " +
		"epyc-7443p epyc-9354p epyc-9654 storage-64tb storage-240tb gpu-rtx-4000-ada gpu-l40s"
	for _, c := range []struct {
		path, ids string
		meta      Object
	}{
		{"/plans", all, stamped(15, 11)},
		{"/plans?family=gpu", "gpu-rtx-4000-ada gpu-l40s", stamped(2, 1)},
		{"/plans?family=gpu&in_stock=true", "gpu-rtx-4000-ada", stamped(1, 1)},
		{"/plans?location=mia&in_stock=1", "xeon-e-2236 xeon-e-2388g ryzen-5-7600 ryzen-9-7950x3d epyc-7443p", stamped(5, 5)},
		{"/plans?family=storage&location=tyo", "", stamped(0, 0)},
		{"/locations", "nyc mia lax lon ams fra sin tyo", Object{"count": 8.0}},
		{
			"/os", "ubuntu-24-04 ubuntu-22-04 debian-13 debian-12 almalinux-9 rocky-9 freebsd-14 proxmox-9 windows-2022 windows-2025",
			Object{"count": 10.0, "custom_iso": true},
		},
		{"/configurations", makeID("cfg", "main", 0) + " " + makeID("cfg", "main", 1) + " " + makeID("cfg", "main", 2), Object{"count": 3.0, "max": 20.0}},
		{"/ssh-keys", makeID("key", "main", 0) + " " + makeID("key", "main", 1), Object{"count": 2.0}},
	} {
		r := get(t, base+c.path, token)
		same(t, c.path+" ids", r.ids(t), c.ids)
		same(t, c.path+" meta", r.object(t)["meta"], any(c.meta))
	}
	same(t, "servers meta", get(t, base+"/servers", token).object(t)["meta"], any(Object{"count": 5.0, "active": 4.0}))
}

func TestAnItemIsThatOfItsList(t *testing.T) {
	base := serve(t, withMain(Options{}))
	for _, list := range []string{"/plans", "/locations", "/topups", "/ssh-keys", "/servers"} {
		last := get(t, base+list, token).object(t)["data"].([]any)
		want := last[len(last)-1].(Object)
		got := get(t, base+list+"/"+text(want, "id"), token).object(t)
		same(t, list, got, Object{"data": want})
	}
}

func TestPaging(t *testing.T) {
	s := withMain(Options{})
	s.Change(func(w *World) {
		w.Accounts[token].Topups = Topups(230, time.Now())
		w.Accounts[token].Transactions = Transactions(120, time.Now())
		put(w.Accounts[token].Account, w.Accounts[token].Transactions[0]["balance_after"].(Object)["usd"], "balance", "usd")
	})
	base := serve(t, s)
	balance := get(t, base+"/account", token).object(t)["data"].(Object)["balance"]
	for _, c := range []struct {
		path                             string
		count, total, page, pages, limit float64
		first                            any
	}{
		{"/topups", 25, 230, 1, 10, 25, makeID("tu", "history", 230)},
		{"/topups?page=10", 5, 230, 10, 10, 25, makeID("tu", "history", 5)},
		{"/topups?page=11", 0, 230, 11, 10, 25, nil},
		{"/topups?page=9223372036854775807", 0, 230, 9223372036854775807, 10, 25, nil},
		{"/topups?limit=100&page=3", 30, 230, 3, 3, 100, makeID("tu", "history", 30)},
		{"/topups?limit=1", 1, 230, 1, 230, 1, makeID("tu", "history", 230)},
		{"/topups?status=expired&limit=20", 20, 23, 1, 2, 20, makeID("tu", "history", 223)},
		{"/topups?status=pending", 0, 0, 1, 0, 25, nil},
		{"/transactions", 50, 120, 1, 3, 50, 120.0},
		{"/transactions?page=3", 20, 120, 3, 3, 50, 20.0},
	} {
		o := get(t, base+c.path, token).object(t)
		meta := Object{"count": c.count, "total": c.total, "page": c.page, "pages": c.pages, "limit": c.limit}
		if strings.HasPrefix(c.path, "/transactions") {
			meta["balance"] = balance
		}
		same(t, c.path+" meta", o["meta"], any(meta))
		data := o["data"].([]any)
		same(t, c.path+" count", float64(len(data)), c.count)
		if len(data) > 0 {
			same(t, c.path+" first", data[0].(Object)["id"], c.first)
		}
	}
	for _, query := range []string{"limit=0", "limit=101", "limit=-1", "limit=", "limit=ten", "limit=1.5", "page=0", "page=-1", "page=", "page=two", "page=1&page=2"} {
		same(t, "/topups?"+query, get(t, base+"/topups?"+query, token).Status, http.StatusBadRequest)
		same(t, "/transactions?"+query, get(t, base+"/transactions?"+query, token).Status, http.StatusBadRequest)
	}
}

func TestOddObjectsAreSentAsTheyAre(t *testing.T) {
	s := withMain(Options{})
	s.Change(func(w *World) {
		w.Plans = []Object{nil, {}, {"id": 7, "availability": "yes"}, {"id": "a", "availability": Object{"in_stock": "true", "locations": []any{1, "nyc"}}}}
		w.Locations, w.Status = nil, nil
		w.Accounts[token] = &Account{Servers: []Object{nil, {"status": 3}}, Topups: []Object{nil, {"status": Object{}}}}
	})
	base := serve(t, s)
	for path, want := range map[string]string{
		"/plans?location=nyc": `"data":[{"availability":{"in_stock":"true","locations":[1,"nyc"]},"id":"a"}],"meta":{"count":1,`,
		"/plans":              `"data":[null,{},{"availability":"yes","id":7},{"availability":{"in_stock":"true","locations":[1,"nyc"]},"id":"a"}]`,
		"/locations":          `{"data":[],"meta":{"count":0}}`,
		"/status":             `{"data":null}`,
		"/account":            `{"data":null}`,
		"/servers":            `{"data":[null,{"status":3}],"meta":{"active":0,"count":2}}`,
		"/topups":             `{"data":[null,{"status":{}}],"meta":{"count":2,`,
		"/topups?status=paid": `{"data":[],"meta":{"count":0,`,
		"/transactions":       `"balance":{"usd":null}`,
	} {
		if got := get(t, base+path, token); !strings.Contains(got.Body, want) {
			t.Errorf("%s: got %s, want within it %s", path, got.Body, want)
		}
	}
}

func TestLifeSurvivesOddObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		s.Change(func(w *World) {
			w.Plans = []Object{nil, {"id": 7, "availability": "yes"}}
			w.Locations, w.Status = []Object{nil}, Object{"locations": Object{"nyc": 1}}
			w.Accounts["x"] = nil
			w.Accounts["y"] = &Account{Servers: []Object{nil}, Topups: []Object{nil, {"status": "pending"}}, Transactions: []Object{nil}}
		})
		liveFor(t, s, 3*time.Hour, func() {})
	})
}

func TestAChangeShowsInTheNextAnswer(t *testing.T) {
	s := withMain(Options{})
	base := serve(t, s)
	same(t, "meta before", get(t, base+"/servers", token).object(t)["meta"], any(Object{"count": 5.0, "active": 4.0}))
	s.Change(func(w *World) { w.Accounts[token].Servers = []Object{{"id": "a", "status": "active"}, {"id": "b"}} })
	same(t, "after", get(t, base+"/servers", token).object(t), Object{
		"data": []any{Object{"id": "a", "status": "active"}, Object{"id": "b"}},
		"meta": Object{"count": 2.0, "active": 1.0},
	})
}

func TestAlternatives(t *testing.T) {
	s := New(Options{})
	alternatives := func() Object {
		all := Object{}
		s.Read(func(w *World) {
			for _, p := range w.Plans {
				if other := at(p, "availability", "alternative"); other != nil {
					all[text(p, "id")] = other
				}
			}
		})
		return all
	}
	want := Object{"ryzen-5-3600": "xeon-e-2236", "ryzen-9-9950x": "ryzen-9-7950x3d", "epyc-9654": "epyc-9354p", "gpu-l40s": "gpu-rtx-4000-ada"}
	same(t, "at first", alternatives(), want)
	sell := func(fits func(id string) bool) {
		s.Change(func(w *World) {
			for _, p := range w.Plans {
				if fits(text(p, "id")) {
					put(p, false, "availability", "in_stock")
				}
			}
			recompute(w)
		})
	}
	sell(func(id string) bool { return id == "gpu-rtx-4000-ada" })
	want["gpu-rtx-4000-ada"], want["gpu-l40s"] = "epyc-7443p", "epyc-9354p" // no family left: the nearest of all
	same(t, "without GPUs", alternatives(), want)
	sell(func(string) bool { return true })
	same(t, "with nothing in stock", alternatives(), Object{})
}

func TestAValueWithoutJSONIsPointedOut(t *testing.T) {
	s := New(Options{})
	s.Change(func(w *World) { w.OS[0]["id"] = make(chan int) })
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "without JSON encoding: json: unsupported type: chan int") {
			t.Errorf("panic says %q, want the type named", got)
		}
		same(t, "status afterwards", ask(s, "/status", "", "pipe").Status, http.StatusOK)
	}()
	ask(s, "/os", "", "pipe")
}

func TestStamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		stamps := func() [2]string {
			return [2]string{
				text(ask(s, "/plans", "", "pipe").object(t), "meta", "generated_at"),
				text(ask(s, "/status", "", "pipe").object(t), "data", "updated_at"),
			}
		}
		var got [][2]string
		for _, wait := range []time.Duration{0, 45 * time.Second, 10 * time.Second} {
			time.Sleep(wait)
			got = append(got, stamps())
		}
		s.Change(func(*World) {})
		got = append(got, stamps())
		time.Sleep(5 * time.Second)
		got = append(got, stamps())
		s.Change(func(w *World) { w.GeneratedAt, w.Status["updated_at"] = "then", "earlier" })
		got = append(got, stamps())
		same(t, "stamps", got, [][2]string{
			{"2000-01-01T00:00:00Z", "2000-01-01T00:00:00Z"},
			{"2000-01-01T00:00:00Z", "2000-01-01T00:00:30Z"},
			{"2000-01-01T00:00:00Z", "2000-01-01T00:00:30Z"},
			{"2000-01-01T00:00:55Z", "2000-01-01T00:00:55Z"},
			{"2000-01-01T00:01:00Z", "2000-01-01T00:01:00Z"},
			{"then", "earlier"},
		})
	})
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{KeepRequests: 3})
		client, _ := serveInMemory(t, s)
		client.Transport.(*http.Transport).DisableKeepAlives = true
		s.Inject(Fault{Path: "/os", Kind: Drop})
		for _, path := range []string{"/api/v1/status", "/api/v1/plans?family=gpu", "/plans", "/api/v1/os"} {
			do(t, client, http.MethodGet, "http://rental.example"+path, "secret")
		}
		header := http.Header{"Authorization": {"Bearer secret"}, "Accept-Encoding": {"gzip"}, "User-Agent": {"Go-http-client/1.1"}, "Connection": {"close"}}
		now := time.Now()
		same(t, "requests", s.Requests(), []Request{
			{now, "/plans", url.Values{"family": {"gpu"}}, "secret", "pipe", header, 200},
			{now, "/plans", url.Values{}, "secret", "pipe", header, 404},
			{now, "/os", url.Values{}, "secret", "pipe", header, 0},
		})
		same(t, "none kept", len(New(Options{KeepRequests: -1}).Requests()), 0)
	})
}

func TestOtherSchemesAreNoToken(t *testing.T) {
	s := withMain(Options{})
	for _, header := range []string{token, "Basic " + token, "bearer " + token, "Bearer", "Bearer  " + token} {
		r, _ := http.NewRequest(http.MethodGet, serve(t, s)+"/account", nil)
		r.Header.Set("Authorization", header)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		same(t, header, response.StatusCode, http.StatusUnauthorized)
	}
}
