//go:build unix

package exporter

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
		if time.Since(began) > 5*time.Minute {
			b.Fatal("not ready")
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(time.Since(began).Seconds(), "ready-s")

	// A minute in which everything is refreshed, with a scrape every ten seconds. The
	// pause before it is for the walks over the history.
	time.Sleep(20 * time.Second)
	cpu, requests := processorTimeOf(b, p.Cmd.Process.Pid), countRequests(p)
	var times []time.Duration
	size := 0
	for range 6 {
		time.Sleep(10 * time.Second)
		at := time.Now()
		size = len(p.Get("/metrics", "Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", "Accept-Encoding", "gzip").Body)
		times = append(times, time.Since(at))
	}
	cpu = processorTimeOf(b, p.Cmd.Process.Pid) - cpu
	slices.Sort(times)
	b.ReportMetric(countRequests(p)-requests, "requests/min")
	b.ReportMetric(cpu.Seconds()*1000, "cpu-ms/min")
	b.ReportMetric(resident(b, p.Cmd.Process.Pid, "VmRSS"), "resident-MiB")
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "scrape-ms")
	b.ReportMetric(float64(size)/1024, "KiB/scrape")
	b.ReportMetric(0, "ns/op")
}

// countRequests returns how many requests the exporter made.
func countRequests(p *simtest.Process) float64 {
	sum := 0.0
	for _, n := range p.Scrape().WithPrefix("server_rental_exporter_api_requests_total{") {
		sum += n
	}
	return sum
}

// processorTimeOf reads what a process has used from /proc: clock ticks are a hundredth of
// a second on Linux.
func processorTimeOf(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	for _, field := range fields[11:13] { // of the user and of the system
		ticks, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}
