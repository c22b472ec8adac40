package exporter

import (
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/simulator"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// BenchmarkScrape measures a scrape of few and of many series.
func BenchmarkScrape(b *testing.B) {
	for _, series := range []int{1_000, 50_000} {
		b.Run(fmt.Sprint("series=", series), func(b *testing.B) {
			e := newTestExporter(b, serversConfig(b, series/5, "")...)
			b.Cleanup(e.runner.Wait) // the context of the benchmark has ended by then
			e.runner.Run(b.Context())
			e.runner.ApplyConfig(b.Context(), e.loaded.Load().spec())
			h := e.handler(b.Context())
			simtest.Eventually(b, "ready", e.runner.Ready)
			request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			for pair := range slices.Chunk(prometheusHeaders(), 2) {
				request.Header.Set(pair[0], pair[1])
			}
			for b.Loop() {
				w := httptest.NewRecorder()
				w.Body = nil // drops what is written
				h.ServeHTTP(w, request)
			}
		})
	}
}

// prometheusHeaders are the headers with which Prometheus scrapes.
func prometheusHeaders() []string {
	return []string{
		"Accept", "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
		"Accept-Encoding", "gzip",
	}
}

// BenchmarkScale measures one exporter with more and more accounts and servers, of a provider with TLS, as each
// request has a handshake.
func BenchmarkScale(b *testing.B) {
	for _, size := range []struct{ accounts, servers int }{{1, 10}, {1, 1000}, {10, 1000}, {100, 10}, {1000, 10}} {
		b.Run(fmt.Sprintf("accounts=%d/servers=%d", size.accounts, size.servers), func(b *testing.B) {
			a, tokens := simtest.Start(b, simulator.Options{}), map[string]string{}
			server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: a.URL.Host}))
			defer server.Close()
			ca := simtest.WriteFile(b, filepath.Join(b.TempDir(), "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
			a.URL.Scheme, a.URL.Host, a.Settings = "https", server.Listener.Addr().String(), "http: {tls_config: {ca_file: "+ca+"}}"
			a.Change(func(w *simulator.World) {
				for i := range size.accounts {
					name := fmt.Sprintf("account-%d", i)
					tokens[name] = "secret-" + name
					w.Accounts[tokens[name]] = simulator.ExampleAccount(name, time.Now())
					w.Accounts[tokens[name]].Servers = simulator.Servers(size.servers, time.Now())
				}
			})
			measure(b, 1, func(int) {}, "--config.file="+a.ConfigFile(b.TempDir(), tokens, ""))
		})
	}
}

// BenchmarkBounds measures an exporter at all bounds at once: of watches, of every list, and of what is
// remembered of items that go. All ids change each minute.
func BenchmarkBounds(b *testing.B) {
	a := simtest.Start(b, simulator.Options{Unlimited: true})
	watches := "watches:\n"
	for i := range 100 {
		watches += fmt.Sprintf("  - {name: watch-%d, min_cores: 1}\n", i)
	}
	measure(b, 8, func(minute int) { a.Change(func(w *simulator.World) { fillToBounds(b, w, minute) }) },
		"--config.file="+a.ConfigFile(b.TempDir(), map[string]string{"main": simtest.MainToken}, watches))
}

// measure measures an exporter in a process of its own for some minutes, with a scrape every ten seconds. That
// takes long, hence SCALE=1.
func measure(b *testing.B, minutes int, begin func(minute int), args ...string) {
	if os.Getenv("SCALE") == "" {
		b.Skip("SCALE is not set")
	}
	for range b.N {
		begin(0)
		p := simtest.StartProcess(b, args...)
		p.WaitReady()
		before, size := scrape(b, p)
		after, most := before, 0
		for minute := range minutes {
			begin(minute + 1)
			for range 6 {
				time.Sleep(10 * time.Second)
				after, size = scrape(b, p)
			}
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
		if err != nil {
			b.Fatal(err)
		}
		if _, err = fmt.Sscan(strings.SplitAfter(string(status), "VmHWM:")[1], &most); err != nil {
			b.Fatal(err)
		}
		const cpu, resident = "process_cpu_seconds_total{}", "process_resident_memory_bytes{}"
		b.ReportMetric((after.Values[cpu]-before.Values[cpu])/float64(minutes), "cpu-s/min")
		b.ReportMetric(after.Values[resident]/(1<<20), "resident-MiB")
		b.ReportMetric(float64(most)/1024, "most-resident-MiB")
		b.ReportMetric(float64(size)/1024, "KiB/scrape")
		b.ReportMetric(0, "ns/op")
		_ = p.Cmd.Process.Kill()
	}
}

// scrape returns the metrics, and the bytes of the response. It is compressed: another variant would be kept, too.
func scrape(b *testing.B, p *simtest.Process) (e simtest.Exposition, size int) {
	r := p.Get("/metrics", "Accept-Encoding", "gzip")
	unpacked, err := gzip.NewReader(strings.NewReader(r.Body))
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(unpacked)
	if err != nil {
		b.Fatal(err)
	}
	return simtest.ParseExposition(b, string(body), r.Header.Get("Content-Type")), len(r.Body)
}

// fillToBounds gives the provider as many of everything as is read, with ids of a minute.
func fillToBounds(t testing.TB, w *simulator.World, minute int) {
	many := func(n int, like simulator.Object, set func(o simulator.Object, i int)) (list []simulator.Object) {
		text := simtest.Encode(t, like)
		for i := range n {
			o := simtest.Decode(t, text)
			o["id"] = fmt.Sprintf("%s-%d-%d", strings.Split(o["id"].(string), "-")[0], minute, i)
			if set != nil {
				set(o, i)
			}
			list = append(list, o)
		}
		return list
	}
	own := w.Accounts[simtest.MainToken]
	w.Locations = many(500, w.Locations[0], nil)
	w.Plans = many(2_000, w.Plans[0], func(o simulator.Object, i int) {
		var places []string
		for n := range 10 {
			places = append(places, w.Locations[(i+n)%500]["id"].(string))
		}
		simulator.Put(o, places, "availability", "locations")
	})
	w.OS = many(1_000, w.OS[0], nil)
	places := simulator.Object{}
	for _, l := range w.Locations {
		places[l["id"].(string)] = simulator.Object{"city": "x", "components": simulator.Object{"network": "up", "ddos": "up", "provisioning": "up", "ipmi": "up"}}
	}
	w.Status["locations"] = places
	own.Configurations = many(1_000, own.Configurations[0], nil)
	own.SSHKeys = many(2_000, own.SSHKeys[0], nil)
	own.Servers = many(20_000, own.Servers[0], nil)
}
