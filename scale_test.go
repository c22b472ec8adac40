package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkScale measures one exporter with more and more accounts and servers,
// against a simulated provider in a process of its own, for a minute each: what
// docs/scaling.md shows. It takes a quarter of an hour, hence SCALE=1.
func BenchmarkScale(b *testing.B) {
	if os.Getenv("SCALE") == "" {
		b.Skip("SCALE is not set")
	}
	dir := b.TempDir()
	for _, pkg := range []string{".", "./cmd/simulator"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, filepath.Base(pkg)+".bin"), pkg)
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	for _, accounts := range []int{1, 10, 100, 1000} {
		for _, servers := range []int{10, 100, 1000} {
			if accounts*servers > 100_000 {
				continue
			}
			b.Run(fmt.Sprintf("accounts=%d/servers=%d", accounts, servers), func(b *testing.B) {
				for range b.N {
					scale(b, dir, accounts, servers)
				}
			})
		}
	}
}

func scale(b *testing.B, dir string, accounts, servers int) {
	base, stopSimulator := background(b, filepath.Join(dir, "simulator.bin"), "base_url=",
		"--listen-address=127.0.0.1:0", fmt.Sprintf("--accounts=%d", accounts), fmt.Sprintf("--servers=%d", servers))
	defer stopSimulator()
	config := filepath.Join(dir, "rental.yml")
	var text strings.Builder
	fmt.Fprintf(&text, "api: {base_url: %q}\naccounts:\n", base)
	for i := range accounts {
		token := filepath.Join(dir, fmt.Sprintf("token-%d", i))
		if err := os.WriteFile(token, fmt.Appendf(nil, "token-%d", i), 0o600); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&text, "  - {name: account-%d, token_file: %s}\n", i, token)
	}
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	exporter := exec.Command(filepath.Join(dir, "..bin"), "--config.file="+config, "--web.listen-address=127.0.0.1:10179")
	if err := exporter.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = exporter.Process.Kill()
		_ = exporter.Wait()
	}()
	url := "http://127.0.0.1:10179"
	began := time.Now()
	for {
		if code, _ := scrapeOf(b, url+"/-/ready"); code == http.StatusOK {
			break
		}
		if time.Since(began) > 5*time.Minute {
			b.Fatal("not ready")
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(time.Since(began).Seconds(), "ready-s")

	// A minute in which everything is refreshed, with a scrape every ten seconds.
	// The first one waits for what the history walks and the encoder still do.
	time.Sleep(20 * time.Second)
	cpu, requests := usage(b, exporter.Process.Pid), countRequests(b, url)
	var times []time.Duration
	size := 0
	for range 6 {
		time.Sleep(10 * time.Second)
		at := time.Now()
		_, size = scrapeOf(b, url+"/metrics")
		times = append(times, time.Since(at))
	}
	used := usage(b, exporter.Process.Pid)
	slices.Sort(times)
	b.ReportMetric(countRequests(b, url)-requests, "requests/min")
	b.ReportMetric((used.cpu-cpu.cpu).Seconds()*1000, "cpu-ms/min")
	b.ReportMetric(float64(used.resident)/1024, "resident-MiB")
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "scrape-ms")
	b.ReportMetric(float64(size)/1024, "KiB/scrape")
	b.ReportMetric(0, "ns/op")
}

// background starts a program and returns what follows prefix in its log.
func background(b *testing.B, program, prefix string, args ...string) (value string, stop func()) {
	b.Helper()
	cmd := exec.Command(program, args...)
	log, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), prefix); ok {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return strings.Trim(strings.Fields(rest)[0], `"`), stop
		}
	}
	stop()
	b.Fatalf("%s ended without %s", program, prefix)
	return "", nil
}

// scrapeOf asks as Prometheus does and reads the answer as it comes.
func scrapeOf(b *testing.B, url string) (code, size int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return resp.StatusCode, int(n)
}

// countRequests returns how many requests the exporter made.
func countRequests(b *testing.B, url string) float64 {
	b.Helper()
	const name = "server_rental_exporter_api_requests_total"
	resp, err := http.Get(url + "/metrics?name[]=" + name)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, name+"{") {
			n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// used is what a process has taken.
type used struct {
	cpu      time.Duration
	resident int // KiB
}

// usage reads /proc: clock ticks are a hundredth of a second on Linux.
func usage(b *testing.B, pid int) used {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	ticks := func(i int) time.Duration {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			b.Fatal(err)
		}
		return time.Duration(n) * 10 * time.Millisecond
	}
	pages, err := strconv.Atoi(fields[21])
	if err != nil {
		b.Fatal(err)
	}
	return used{cpu: ticks(11) + ticks(12), resident: pages * os.Getpagesize() / 1024}
}
