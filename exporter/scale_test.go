//go:build unix

package exporter

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator/simtest"
)

// BenchmarkScale measures one exporter with more and more accounts and servers,
// against a simulated provider in a process of its own, for a minute each, as shown
// in docs/limits.md. It takes a quarter of an hour, hence SCALE=1.
func BenchmarkScale(b *testing.B) {
	if os.Getenv("SCALE") == "" {
		b.Skip("SCALE is not set")
	}
	simulator := simtest.Build(b, "server_rental_exporter/cmd/simulator")
	for _, accounts := range []int{1, 10, 100, 1000} {
		for _, servers := range []int{10, 100, 1000} {
			if accounts*servers > 100_000 {
				continue
			}
			b.Run(fmt.Sprintf("accounts=%d/servers=%d", accounts, servers), func(b *testing.B) {
				for range b.N {
					scale(b, simulator, accounts, servers)
				}
			})
		}
	}
}

func scale(b *testing.B, simulator string, accounts, servers int) {
	var base string
	provider := simtest.StartCommand(b, exec.Command(simulator, "--listen-address=127.0.0.1:0",
		fmt.Sprintf("--accounts=%d", accounts), fmt.Sprintf("--servers=%d", servers)))
	defer func() { _ = provider.Cmd.Process.Kill() }()
	provider.Eventually("listening", func() bool {
		_, after, found := strings.Cut(provider.Log.String(), "base_url=")
		if found {
			base = strings.Fields(after)[0]
		}
		return found
	})
	dir := b.TempDir()
	var text strings.Builder
	fmt.Fprintf(&text, "api: {base_url: %q}\naccounts:\n", base)
	for i := range accounts {
		token := simtest.WriteFile(b, filepath.Join(dir, fmt.Sprintf("token-%d", i)), fmt.Sprintf("token-%d", i))
		fmt.Fprintf(&text, "  - {name: account-%d, token_file: %s}\n", i, token)
	}
	began := time.Now()
	p := simtest.StartProcess(b, "--config.file="+simtest.WriteFile(b, filepath.Join(dir, "rental.yml"), text.String()))
	defer func() { _ = p.Cmd.Process.Kill() }()
	for p.Get("/-/ready").Status != http.StatusOK {
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(time.Since(began).Seconds(), "ready-s")

	// A minute in which everything is refreshed, with a scrape every ten seconds. The
	// pause before it is for the walks over the history.
	time.Sleep(20 * time.Second)
	before := p.Scrape()
	var times []time.Duration
	size := 0
	for range 6 {
		time.Sleep(10 * time.Second)
		at := time.Now()
		size = len(p.Get("/metrics", "Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", "Accept-Encoding", "gzip").Body)
		times = append(times, time.Since(at))
	}
	after := p.Scrape()
	slices.Sort(times)
	for name, unit := range map[string]string{"server_rental_exporter_api_requests_total": "requests/min", "process_cpu_seconds_total": "cpu-s/min"} {
		b.ReportMetric(sum(after, name)-sum(before, name), unit)
	}
	b.ReportMetric(sum(after, "process_resident_memory_bytes")/(1<<20), "resident-MiB")
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "scrape-ms")
	b.ReportMetric(float64(size)/1024, "KiB/scrape")
	b.ReportMetric(0, "ns/op")
}

// sum returns the sum of the samples whose series begin with a prefix.
func sum(page simtest.Exposition, prefix string) float64 {
	total := 0.0
	for _, v := range page.WithPrefix(prefix) {
		total += v
	}
	return total
}
