package exporter

import (
	"context"
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

// TestLookForAccounts lets the files of accounts come and go. A faulty one is named once, and costs
// no neighbour anything.
func TestLookForAccounts(t *testing.T) {
	t.Parallel()
	a, dir := startAPI(t), t.TempDir()
	more := filepath.Join(dir, "more")
	if err := os.Mkdir(more, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config.file=" + a.ConfigFile(dir, map[string]string{"main": simtest.MainToken}, "account_files: [more/*]\n")}
	e, log := newTestExporter(t, args...), &simtest.Buffer{}
	e.logger = newLogger(log, "info", "logfmt")
	ctx, stop := context.WithCancel(t.Context())
	defer e.runner.Wait()
	defer stop()
	loadedAt := e.loaded.Load().at

	for _, step := range []struct {
		name string
		do   func()
		want []string // accounts
		log  string
	}{
		{"nothing", func() {}, []string{"main"}, ""},
		{"a new one and a link to nothing", func() {
			simtest.WriteFile(t, filepath.Join(more, "lab.token"), simtest.LabToken)
			simtest.AssertEqual(t, "link", os.Symlink("nowhere", filepath.Join(more, "link")), nil)
		}, []string{"main", "lab"}, `level=info msg="account added" account=lab`},
		{"faulty ones", func() {
			simtest.WriteFile(t, filepath.Join(more, "empty"), "")
			simtest.WriteFile(t, filepath.Join(more, "main"), "s3cr3t")
			simtest.WriteFile(t, filepath.Join(more, "lab.backup"), "s3cr3t") // sorts before lab.token
		}, []string{"main", "lab"}, filepath.Join(more, "lab.backup") + `: duplicate name`},
		{"still faulty", func() {}, []string{"main", "lab"}, ""},
		{"a known one becomes empty", func() { simtest.WriteFile(t, filepath.Join(more, "lab.token"), "") }, []string{"main", "lab"}, ""},
		{"it goes", func() {
			simtest.AssertEqual(t, "remove", os.Remove(filepath.Join(more, "lab.backup")), nil)
			simtest.AssertEqual(t, "remove", os.Remove(filepath.Join(more, "lab.token")), nil)
		}, []string{"main"}, `msg="account removed" account=lab`},
	} {
		step.do()
		before := len(log.String())
		e.lookForAccounts(ctx)
		got := log.String()[before:]
		if step.log == "" && strings.Contains(got, "account ") || !strings.Contains(got, step.log) {
			t.Errorf("%s: got log %q, want %q", step.name, got, step.log)
		}
		var names []string
		for _, account := range e.loaded.Load().config.Accounts {
			names = append(names, account.Name)
		}
		simtest.AssertEqual(t, step.name, names, step.want)
	}
	simtest.AssertEqual(t, "time of the configuration", e.loaded.Load().at, loadedAt)
	if strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("got a token in the log:\n%s", log)
	}
}

// countByToken counts the requests by token, "" for none.
func countByToken(a *simtest.API) map[string]int {
	counts := map[string]int{}
	for _, r := range a.Requests() {
		counts[r.Token]++
	}
	return counts
}
