package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// body is a response that keeps where the bytes of its body are, and drops them.
type body struct {
	*httptest.ResponseRecorder
	first *byte
	size  int
}

// Write implements io.Writer.
func (b *body) Write(p []byte) (int, error) {
	b.first, b.size = &p[0], b.size+len(p)
	return len(p), nil
}

// getPage requests the landing page n times at once.
func getPage(h http.Handler, n int) []*body {
	bodies := make([]*body, n)
	var wg sync.WaitGroup
	for i := range bodies {
		bodies[i] = &body{ResponseRecorder: httptest.NewRecorder()}
		wg.Go(func() { h.ServeHTTP(bodies[i], httptest.NewRequest(http.MethodGet, "/", nil)) })
	}
	wg.Wait()
	return bodies
}

// TestLandingPageIsShared asserts that all responses within a second send the same bytes, which
// are rendered once.
func TestLandingPageIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renderings atomic.Int64
		o := allEnabled()
		o.Published = func() map[string][]*sample {
			renderings.Add(1)
			return nil
		}
		h := Handler(&fakeSource{}, o)
		bodies := getPage(h, 50)
		time.Sleep(maxPageAge - time.Nanosecond)
		bodies = append(bodies, getPage(h, 1)...)
		copies := map[*byte]bool{}
		for _, b := range bodies {
			copies[b.first] = true
		}
		simtest.AssertEqual(t, "copies of the page", len(copies), 1)
		simtest.AssertEqual(t, "Content-Length", bodies[0].Header().Get("Content-Length"), fmt.Sprint(bodies[0].size))
		simtest.AssertEqual(t, "renderings within a second", renderings.Load(), int64(1))
		time.Sleep(time.Nanosecond)
		getPage(h, 50)
		simtest.AssertEqual(t, "renderings after a second", renderings.Load(), int64(2))
	})
}

// BenchmarkLandingPage measures one request, and 50 at once, for the page of 1,000 accounts with
// 10 servers each, when the last rendering is too old.
func BenchmarkLandingPage(b *testing.B) {
	var g given
	for i := range 1000 {
		account := fmt.Sprint("account-", i)
		g.accounts = append(g.accounts, account)
		g.series = append(g.series, one("account_balance_usd", 900, account), one("account_cost_usd_per_month", 1000, account),
			one("account_funded_until_timestamp_seconds", unix(5*day), account), one("servers", 10, account, "active"))
		for j := range 10 {
			id := fmt.Sprint("srv_", j)
			g.series = append(g.series, one("server_info", 1, account, id, "epyc-9654", "", "fra", "", id), one("server_status", 1, account, id, "active"),
				one("server_price_usd_per_month", 100, account, id), one("server_renews_timestamp_seconds", unix(time.Duration(3*j)*day), account, id))
		}
	}
	source, options := g.source()
	for _, requests := range []int{1, 50} {
		b.Run(fmt.Sprintf("requests=%d", requests), func(b *testing.B) {
			for b.Loop() {
				getPage(landing(source, options), requests)
			}
		})
	}
}
