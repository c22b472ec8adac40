package campaign_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

// TestMemory scrapes 50,000 series in every format and coding, through refreshes
// that replace them all: 100 MiB are enough.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for refreshes")
	}
	r := newRental(t)
	r.Change(func(w *simulator.World) { w.Accounts[mainToken].Servers = simulator.Servers(10_000, time.Now()) })
	e := ready(t, nil, "--config.file="+r.configuration(t, t.TempDir(), map[string]string{"main": mainToken}, "collectors: {servers: {interval: 10s}}\n"))
	const refreshed = "server_rental_exporter_collector_last_success_timestamp_seconds"
	last, page := 0.0, values(nil)
	for refreshes := 0; refreshes < 3; {
		accepts, codings := forms()
		for _, accept := range accepts {
			for _, coding := range codings {
				e.scrapeAs(accept, coding)
			}
		}
		page = e.scrape()
		if at := page[series(refreshed, "account", "main", "collector", "servers")]; at > last {
			last = at
			refreshes++
		}
		time.Sleep(time.Second)
	}
	kept := page["server_rental_exporter_exposition_bytes{}"] / (1 << 20)
	resident := e.memory("VmRSS") >> 20
	t.Logf("%d series, %.1f MiB kept encoded, resident memory %d MiB, at most %d MiB", len(page), kept, resident, e.memory("VmHWM")>>20)
	if len(page) < 50_000 || kept < 1 || kept > 32 || resident > 100 {
		t.Error("want at least 50,000 series, 1 to 32 MiB kept, at most 100 MiB of resident memory")
	}
}

// scrapeAs reads an answer in a format and coding as it comes.
func (e *exporter) scrapeAs(accept, coding string) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, "http://"+e.address+"/metrics", nil)
	if err != nil {
		e.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Accept-Encoding", coding)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		e.t.Errorf("%s in %s: status %d, error %v", accept, coding, resp.StatusCode, err)
	}
}
