package exporter

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/rentalapi"
	"server_rental_exporter/internal/runner"
	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// A process that is killed knows nothing of the requests of its predecessor. Killed
// every five seconds or less often, all of them together stay within the provider's
// limits at the default rate limits, with any length of history.
func TestRestartLoop(t *testing.T) {
	// Each process requests all resources of the account at once, and then a page of a
	// history every 1.5 seconds. With 60/pace processes a minute, these are at most 120
	// requests if the pace is at least 0.75 seconds for each resource.
	shortest := 0.0
	for _, r := range collector.Resources() {
		if r.Account {
			shortest += 0.75
		}
	}
	paces := []time.Duration{time.Duration(math.Ceil(shortest)) * time.Second, 7 * time.Second, 11 * time.Second, 20 * time.Second, 45 * time.Second}
	if testing.Short() {
		paces = paces[:1]
	}
	for _, pace := range paces {
		t.Run(fmt.Sprint(pace), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := simtest.StartInMemory(t, simulator.Options{PublicLimit: -1, AccountLimit: -1})
				a.Change(func(w *simulator.World) {
					account := w.Accounts[simtest.MainToken]
					account.Transactions = simulator.Transactions(5000, time.Now())
					account.Topups = append(account.Topups, simulator.Topups(500, time.Now())...)
				})
				for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
					ctx, kill := context.WithCancel(t.Context())
					p := &runningPipeline{Runner: runner.New(runner.Options{Logger: log.NewNopLogger(), UserAgent: "test", API: inMemory(t, a, rentalapi.Limits{Public: 30, Account: 60, AccountBulk: 50})}), t: t, ctx: ctx}
					p.Publish(ctx)
					p.applyConfig(mainAccount())
					time.Sleep(pace)
					kill()
					p.Wait()
				}
				a.AssertRateLimits(59, 120)
			})
		})
	}
}
