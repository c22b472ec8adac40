package simtest

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator"
)

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := StartInMemory(t, simulator.Options{})
		a.Inject(Fault{Path: "/os", Kind: Drop})
		for _, path := range []string{"/api/v1/status", "/api/v1/topups?limit=7", "/plans", "/api/v1/os"} {
			_, _ = Do(a.Client(), http.MethodGet, "http://rental.example"+path, "Authorization", "Bearer secret") // /os is dropped
		}
		header := http.Header{"Authorization": {"Bearer secret"}, "User-Agent": {"Go-http-client/1.1"}, "Connection": {"close"}}
		now := time.Now()
		AssertEqual(t, "requests", a.Requests(), []Request{
			{now, "/status", url.Values{}, "secret", "pipe", header, 200},
			{now, "/topups", url.Values{"limit": {"7"}}, "secret", "pipe", header, 401},
			{now, "/plans", url.Values{}, "secret", "pipe", header, 404},
			{now, "/os", url.Values{}, "secret", "pipe", header, 0},
		})
	})
}
