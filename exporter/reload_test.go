package exporter

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

const (
	reloadOK   = "server_rental_exporter_config_last_reload_successful{}"
	reloadedAt = "server_rental_exporter_config_last_reload_success_timestamp_seconds{}"
)

// reload reloads with SIGHUP and returns after the reload.
func (p *program) reload() {
	p.T.Helper()
	reloads := func() int {
		return strings.Count(p.log.String(), "configuration reloaded") + strings.Count(p.log.String(), "reload failed, keeping current configuration")
	}
	before := reloads()
	p.hangup <- syscall.SIGHUP
	simtest.Eventually(p.T, "a reload is logged", func() bool { return reloads() > before })
}

// TestReload reloads with SIGHUP an invalid configuration, and then one with a watch after
// another account's file came.
func TestReload(t *testing.T) {
	t.Parallel()
	a, dir := startAPI(t), t.TempDir()
	more := filepath.Join(dir, "more")
	if err := os.Mkdir(more, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := hourly() + "account_files: [more/*]\n"
	p := startReady(t, "--config.file="+a.ConfigFile(dir, map[string]string{"main": simtest.MainToken}, settings))
	awaitResponses(t, a)
	requests, first := countByToken(a), p.Scrape()

	simtest.WriteFile(t, filepath.Join(dir, "rental.yml"), "api: {base_url: nowhere}\naccounts: [{name: main}]\n")
	p.reload()
	page := p.Scrape()
	simtest.AssertEqual(t, "result and time of a failed reload", []float64{page.Values[reloadOK], page.Values[reloadedAt]}, []float64{0, first.Values[reloadedAt]})
	simtest.AssertEqual(t, "data after a failed reload", page.Data(), first.Data())
	cause := "rental.yml: accounts[0].token_file: missing or empty"
	for place, text := range map[string]string{"log": p.log.String(), "landing page": p.Get("/").Body} {
		if !strings.Contains(text, cause) {
			t.Errorf("the %s lacks %q", place, cause)
		}
	}
	// All other accounts go on, so nothing is requested again.
	simtest.WriteFile(t, filepath.Join(more, "lab"), simtest.LabToken)
	a.ConfigFile(dir, map[string]string{"main": simtest.MainToken}, settings+"watches: [{name: gpu, gpu: true}]\n")
	p.reload()
	simtest.Eventually(t, "the new account is exposed", func() bool { return len(p.Scrape().CollectorSuccess()) == len(success(1, "main", "lab")) })
	page = p.Scrape()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), success(1, "main", "lab"))
	simtest.AssertEqual(t, "plans of the new watch", page.Values[`server_rental_watch_plans{watch="gpu"}`], 2.0)
	if page.Values[reloadOK] != 1 || page.Values[reloadedAt] <= first.Values[reloadedAt] {
		t.Errorf("reload: got %v at %v, before it %v", page.Values[reloadOK], page.Values[reloadedAt], first.Values[reloadedAt])
	}
	awaitResponses(t, a)
	got := countByToken(a)
	delete(got, simtest.LabToken)
	simtest.AssertEqual(t, "requests by token, without the new one", got, requests)
}

// countByToken counts the requests by token, "" for none.
func countByToken(a *simtest.API) map[string]int {
	counts := map[string]int{}
	for _, r := range a.Requests() {
		counts[r.Token]++
	}
	return counts
}
