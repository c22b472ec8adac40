package exporter

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	kitlog "github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
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
// no neighbour anything; while a directory cannot be read, nothing changes.
func TestLookForAccounts(t *testing.T) {
	t.Parallel()
	a, dir := startAPI(t), t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(names ...string) {
		for _, name := range names {
			simtest.WriteFile(t, path(name), "s3cr3t")
		}
	}
	remove := func(names ...string) {
		for _, name := range names {
			simtest.AssertEqual(t, "remove", os.RemoveAll(path(name)), nil)
		}
	}
	link := func(target, name string) { simtest.AssertEqual(t, "link", os.Symlink(target, path(name)), nil) }
	for _, name := range []string{"more/sub", "deep/one", "deep/..data"} {
		simtest.AssertEqual(t, "directory", os.MkdirAll(path(name), 0o700), nil)
	}
	// Patterns that find the same files, among them that of an account which is listed.
	args := []string{"--config.file=" + a.ConfigFile(dir, map[string]string{"main": simtest.MainToken}, "account_files: [more/*, more/*.token, main.token, deep/*/*]\n")}
	e, log := newTestExporter(t, args...), &simtest.Buffer{}
	e.logger = level.NewFilter(kitlog.NewLogfmtLogger(log), level.AllowInfo())
	ctx, stop := context.WithCancel(t.Context())
	defer e.runner.Wait()
	defer stop()
	loadedAt := e.loaded.Load().at

	for _, step := range []struct {
		name string
		do   func()
		want string // accounts
		log  string // parts of the log, separated by lines; nothing is logged if it is empty
	}{
		{"nothing", func() {}, "main", ""},
		{"new ones and a link to nothing", func() {
			write("more/lab.token", "deep/one/x.token", "deep/..data/y", "deep/file")
			link("nowhere", "more/link")
		}, "main x lab", "msg=\"account added\" account=x\nmsg=\"account added\" account=lab"},
		{"files of editors", func() { write("more/lab.token~", "more/#lab.token#", "more/.lab.token.swp", "deep/one/.x") }, "main x lab", ""},
		{"a directory that cannot be read, and one that is gone", func() {
			link("loop", "deep/loop")
			remove("more/lab.token")
		}, "main x lab", "account_files[3]: stat " + path("deep/loop") + ": too many levels"},
		{"still", func() {}, "main x lab", ""},
		{"readable again", func() { remove("deep/loop") }, "main x", "msg=\"account removed\" account=lab"},
		{"faulty ones", func() {
			write("more/main", "more/lab.token", "deep/one/x.bak") // the last one sorts before x.token
			simtest.WriteFile(t, path("more/empty"), "")
		}, "main x lab", path("deep/one/x.bak") + `: duplicate name \"x\": must be unique, already used by ` + path("rental.yml") + ": account_files[3]: " + path("deep/one/x.token") +
			"\n" + path("more/main") + ": duplicate name\n" + path("more/empty") + ": missing or empty\naccount=lab"},
		{"still faulty", func() {}, "main x lab", ""},
		{"a known one becomes empty", func() { simtest.WriteFile(t, path("more/lab.token"), "") }, "main x lab", ""},
		{"they go, and the name is free", func() { remove("deep/one/x.token", "more/lab.token") }, "main x", "account=lab"},
	} {
		step.do()
		before := len(log.String())
		e.lookForAccounts(ctx)
		got := log.String()[before:]
		for part := range strings.SplitSeq(step.log, "\n") {
			if !strings.Contains(got, part) || step.log == "" && strings.Contains(got, "account") {
				t.Errorf("%s: got log %q, want %q", step.name, got, part)
			}
		}
		var names []string
		for _, account := range e.loaded.Load().config.Accounts {
			names = append(names, account.Name)
		}
		simtest.AssertEqual(t, step.name, strings.Join(names, " "), step.want)
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
