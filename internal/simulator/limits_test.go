package simulator_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

var limitHeaders = []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"}

func TestPublicLimitSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		admitted := func(address string, n int) (ok int, last response) {
			for range n {
				last = ask(s, "/plans", "", address)
				if last.Status == http.StatusOK {
					ok++
				}
			}
			return ok, last
		}
		var got []string
		step := func(wait time.Duration, address string, n int) {
			time.Sleep(wait)
			ok, last := admitted(address, n)
			got = append(got, fmt.Sprintf("%s: %d of %d, then %d, retry %q", address, ok, n, last.Status, last.Header.Get("Retry-After")))
		}
		step(0, "10.0.0.1:1000", 40)
		step(30*time.Second, "10.0.0.1:1001", 30)
		step(0, "10.0.0.2:1000", 1)
		step(0, "pipe", 1)
		step(30*time.Second-time.Millisecond, "10.0.0.1:1002", 1)
		step(time.Millisecond, "10.0.0.1:1003", 50)
		step(30*time.Second, "10.0.0.1:1003", 20)
		simtest.AssertEqual(t, "admitted", got, []string{
			"10.0.0.1:1000: 40 of 40, then 200, retry \"\"",
			"10.0.0.1:1001: 19 of 30, then 429, retry \"30\"",
			"10.0.0.2:1000: 1 of 1, then 200, retry \"\"",
			"pipe: 1 of 1, then 200, retry \"\"",
			"10.0.0.1:1002: 0 of 1, then 429, retry \"1\"",
			"10.0.0.1:1003: 40 of 50, then 429, retry \"30\"",
			"10.0.0.1:1003: 19 of 20, then 429, retry \"30\"",
		})
	})
}

func TestRateLimitHeadersOnEveryResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{AccountLimit: 5})
		type result struct {
			Status  int
			Headers map[string]string
		}
		var got []result
		for _, c := range []struct{ method, path string }{
			{"GET", "/account"},
			{"GET", "/topups/none"},
			{"POST", "/servers"},
			{"GET", "/servers?page=1"},
			{"GET", "/ssh-keys"},
			{"GET", "/account"},
			{"GET", "/plans"},
		} {
			r := do(t, a, c.method, c.path, simtest.MainToken)
			got = append(got, result{r.Status, r.headers(limitHeaders...)})
			time.Sleep(10 * time.Second)
		}
		r := do(t, a, "GET", "/account", simtest.MainToken)
		got = append(got, result{r.Status, r.headers(limitHeaders...)})
		limits := func(remaining, reset string) map[string]string {
			return map[string]string{"RateLimit-Limit": "5", "RateLimit-Remaining": remaining, "RateLimit-Reset": reset}
		}
		refused := limits("0", "10")
		refused["Retry-After"] = "10"
		simtest.AssertEqual(t, "result", got, []result{
			{200, limits("4", "60")},
			{404, limits("3", "50")},
			{405, limits("2", "40")},
			{400, limits("1", "30")},
			{200, limits("0", "20")},
			{429, refused},
			{200, map[string]string{}},
			{200, limits("1", "10")},
		})
	})
}

func TestDefaultAndDisabledLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admitted := func(o simulator.Options, path string) (n int) {
			a := simtest.StartInMemory(t, o)
			for n < 200 && ask(a, path, simtest.MainToken, "pipe").Status == http.StatusOK {
				n++
			}
			return n
		}
		simtest.AssertEqual(t, "admitted", map[string]int{
			"public": admitted(simulator.Options{}, "/os"), "account": admitted(simulator.Options{}, "/account"),
			"public without": admitted(simulator.Options{PublicLimit: -1}, "/os"), "account without": admitted(simulator.Options{AccountLimit: -1}, "/account"),
		}, map[string]int{"public": 59, "account": 120, "public without": 200, "account without": 200})
		free := ask(simtest.StartInMemory(t, simulator.Options{AccountLimit: -1}), "/account", simtest.MainToken, "pipe")
		simtest.AssertEqual(t, "headers without a limit", free.headers(limitHeaders...), map[string]string{})
	})
}
