package simulator_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

func TestPublicLimitSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulator.New(simulator.Options{})
		var got []int
		step := func(wait time.Duration, address string, requests int) {
			time.Sleep(wait)
			admitted := 0
			for range requests {
				if ask(s, "/plans", address).Status == http.StatusOK {
					admitted++
				}
			}
			got = append(got, admitted)
		}
		step(0, "10.0.0.1:1000", 40)
		step(30*time.Second, "10.0.0.1:1001", 30)
		step(0, "10.0.0.2:1000", 1)
		step(30*time.Second-time.Millisecond, "10.0.0.1:1002", 1)
		step(time.Millisecond, "10.0.0.1:1003", 50)
		simtest.AssertEqual(t, "admitted", got, []int{40, 19, 1, 0, 40})
	})
}

func TestAccountLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := simtest.StartInMemory(t, simulator.Options{})
		type result struct {
			status  int
			headers map[string]string
		}
		request := func(path string) result {
			r := get(t, a, path)
			return result{r.Status, r.headers("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After")}
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
