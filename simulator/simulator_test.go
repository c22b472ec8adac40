package simulator_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// get requests a path below the prefix.
func get(h http.Handler, path string) simtest.Response {
	return simtest.ServeGet(h, simulator.Prefix+path, "Authorization", "Bearer "+simtest.MainToken)
}

// headers returns the named headers that are present.
func headers(r simtest.Response, names ...string) map[string]string {
	found := map[string]string{}
	for _, name := range names {
		if values := r.Header.Values(name); len(values) > 0 {
			found[name] = strings.Join(values, ", ")
		}
	}
	return found
}

func TestHeaders(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
	public := func(age string) map[string]string {
		return map[string]string{"Cache-Control": "max-age=" + age, "Access-Control-Allow-Origin": "*", "Content-Type": "application/json"}
	}
	private := map[string]string{"Cache-Control": "no-store", "Content-Type": "application/json"}
	for path, want := range map[string]map[string]string{
		"/plans": public("60"), "/locations": public("60"), "/os": public("60"), "/status": public("30"), "/account": private, "/topups": private,
	} {
		got := get(a, path)
		simtest.AssertEqual(t, path+" status", got.Status, http.StatusOK)
		simtest.AssertEqual(t, path+" headers", headers(got, "Cache-Control", "Access-Control-Allow-Origin", "Content-Type", "Allow"), want)
	}
}

func TestErrors(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
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
		{"GET", "/unknown", simtest.MainToken, notFound},
		{"POST", "/plans", "", wrongMethod},
		{"POST", "/account", "", wrongMethod},
		{"GET", "/account", "", failed{401, "unauthorized", ""}},
		{"GET", "/account", "other", failed{401, "invalid_token", ""}},

		{"GET", "/plans/epyc-9654", "", notFound},
		{"GET", "/plans?page=1", "", invalid},
		{"GET", "/plans?a;b", "", invalid},
		{"GET", "/topups?status=lost", simtest.MainToken, invalid},
		{"GET", "/transactions?status=paid", simtest.MainToken, invalid},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			r, err := simtest.Do(c.method, a.URL.String()+c.path, "Authorization", "Bearer "+c.token)
			if err != nil {
				t.Fatal(err)
			}
			o := simtest.Decode(t, []byte(r.Body))
			simtest.AssertEqual(t, "error", failed{r.Status, simulator.Text(o, "error", "code"), r.Header.Get("Allow")}, c.want)
			simtest.AssertEqual(t, "docs", simulator.At(o, "error", "docs"), any("https://rental.example/docs/api#errors"))
			if simulator.Text(o, "error", "message") == "" || len(o) != 1 || len(o["error"].(simulator.Object)) != 3 {
				t.Errorf("body is %s, want code, message and docs", r.Body)
			}
		})
	}
}

func TestPaging(t *testing.T) {
	a := simtest.Start(t, simulator.Options{})
	topups, transactions := simulator.Topups(230, time.Now()), simulator.Transactions(120, time.Now())
	a.Change(func(w *simulator.World) {
		main := w.Accounts[simtest.MainToken]
		main.Topups, main.Transactions = topups, transactions
		main.Account["balance"] = transactions[0]["balance_after"]
	})
	balance := simtest.Decode(t, []byte(get(a, "/account").Body))["data"].(simulator.Object)["balance"]
	for _, c := range []struct {
		path                             string
		count, total, page, pages, limit float64
		first                            any
	}{
		{"/topups", 25, 230, 1, 10, 25, topups[0]["id"]},
		{"/topups?page=10", 5, 230, 10, 10, 25, topups[225]["id"]},
		{"/topups?page=11", 0, 230, 11, 10, 25, nil},
		{"/topups?limit=100&page=3", 30, 230, 3, 3, 100, topups[200]["id"]},
		{"/topups?status=expired&limit=20", 20, 23, 1, 2, 20, topups[7]["id"]},
		{"/topups?status=failed&limit=1", 1, 23, 1, 23, 1, topups[8]["id"]},
		{"/topups?status=pending", 0, 0, 1, 0, 25, nil},
		{"/transactions", 50, 120, 1, 3, 50, 120.0},
		{"/transactions?page=3", 20, 120, 3, 3, 50, 20.0},
	} {
		o := simtest.Decode(t, []byte(get(a, c.path).Body))
		meta := simulator.Object{"count": c.count, "total": c.total, "page": c.page, "pages": c.pages, "limit": c.limit}
		if strings.HasPrefix(c.path, "/transactions") {
			meta["balance"] = balance
		}
		simtest.AssertEqual(t, c.path+" meta", o["meta"], any(meta))
		data := o["data"].([]any)
		simtest.AssertEqual(t, c.path+" count", float64(len(data)), c.count)
		if len(data) > 0 {
			simtest.AssertEqual(t, c.path+" first", data[0].(simulator.Object)["id"], c.first)
		}
	}
	for _, query := range []string{"limit=0", "limit=101", "limit=1.5", "page=0", "page=", "page=1&page=2"} {
		simtest.AssertEqual(t, "/topups?"+query, get(a, "/topups?"+query).Status, http.StatusBadRequest)
	}
}

func TestAccountLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		type result struct {
			status  int
			headers map[string]string
		}
		request := func(path string) result {
			r := get(a, path)
			return result{r.Status, headers(r, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After")}
		}
		limits := func(remaining, reset string) map[string]string {
			return map[string]string{"RateLimit-Limit": "120", "RateLimit-Remaining": remaining, "RateLimit-Reset": reset}
		}
		simtest.AssertEqual(t, "first response", request("/account"), result{200, limits("119", "60")})
		time.Sleep(10 * time.Second)
		for range 117 {
			request("/servers?page=1") // errors count, too
		}
		simtest.AssertEqual(t, "error", request("/servers?page=1"), result{400, limits("1", "50")})
		simtest.AssertEqual(t, "last response", request("/ssh-keys"), result{200, limits("0", "50")})
		refused := limits("0", "50")
		refused["Retry-After"] = "50"
		simtest.AssertEqual(t, "too many", request("/account"), result{429, refused})
		simtest.AssertEqual(t, "public", request("/plans"), result{200, map[string]string{}})
		time.Sleep(50 * time.Second)
		simtest.AssertEqual(t, "a minute after the first", request("/account"), result{200, limits("0", "10")})
	})
}
