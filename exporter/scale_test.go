//go:build unix

package exporter

import (
	"fmt"
	"os"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// BenchmarkScale measures one exporter with more and more accounts and servers, in a process
// of its own, for a minute each, as shown in docs/limits.md. It takes ten minutes, hence
// SCALE=1.
func BenchmarkScale(b *testing.B) {
	if os.Getenv("SCALE") == "" {
		b.Skip("SCALE is not set")
	}
	for _, size := range []struct{ accounts, servers int }{{1, 10}, {1, 1000}, {10, 1000}, {100, 10}, {1000, 10}} {
		b.Run(fmt.Sprintf("accounts=%d/servers=%d", size.accounts, size.servers), func(b *testing.B) {
			for range b.N {
				scale(b, size.accounts, size.servers)
			}
		})
	}
}

func scale(b *testing.B, accounts, servers int) {
	a, tokens := simtest.Start(b, simulator.Options{}), map[string]string{}
	a.Change(func(w *simulator.World) {
		for i := range accounts {
			name := fmt.Sprintf("account-%d", i)
			tokens[name] = "secret-" + name
			w.Accounts[tokens[name]] = simulator.ExampleAccount(name, time.Now())
			w.Accounts[tokens[name]].Servers = simulator.Servers(servers, time.Now())
		}
	})
	p := simtest.StartProcess(b, "--config.file="+a.ConfigFile(b.TempDir(), tokens, ""))
	defer func() { _ = p.Cmd.Process.Kill() }()
	p.WaitReady()

	// A minute in which everything is refreshed, with a scrape every ten seconds. The
	// pause before it is for the walks over the history.
	time.Sleep(20 * time.Second)
	before, size := p.Scrape(), 0
	for range 6 {
		time.Sleep(10 * time.Second)
		size = len(p.Get("/metrics", prometheusHeaders()...).Body)
	}
	after := p.Scrape()
	b.ReportMetric(after.Values["process_cpu_seconds_total{}"]-before.Values["process_cpu_seconds_total{}"], "cpu-s/min")
	b.ReportMetric(after.Values["process_resident_memory_bytes{}"]/(1<<20), "resident-MiB")
	b.ReportMetric(float64(size)/1024, "KiB/scrape")
	b.ReportMetric(0, "ns/op")
}
