package exporter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

const (
	reloadOK   = "server_rental_exporter_config_last_reload_successful{}"
	reloadedAt = "server_rental_exporter_config_last_reload_success_timestamp_seconds{}"
)

// reload reloads with SIGHUP and returns after the reload.
func (p *program) reload() {
	p.t.Helper()
	reloads := func() int {
		return strings.Count(p.log.String(), "configuration reloaded") + strings.Count(p.log.String(), "reload failed, keeping current configuration")
	}
	before := reloads()
	p.hangup <- syscall.SIGHUP
	simtest.Eventually(p.t, "a reload is logged", func() bool { return reloads() > before })
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
	simtest.Eventually(t, "all requests have responses", a.Idle)
	requests, first := countByToken(a), p.scrape()

	simtest.WriteFile(t, filepath.Join(dir, "rental.yml"), "api: {base_url: nowhere}\naccounts: [{name: main}]\n")
	p.reload()
	page := p.scrape()
	simtest.AssertEqual(t, "result and time of a failed reload", []float64{page.Values[reloadOK], page.Values[reloadedAt]}, []float64{0, first.Values[reloadedAt]})
	simtest.AssertEqual(t, "data after a failed reload", page.Data(), first.Data())
	if cause := "rental.yml: accounts[0].token_file: missing or empty"; !strings.Contains(p.log.String(), cause) {
		t.Errorf("the log lacks %q", cause)
	}
	if !strings.Contains(p.get("/").Body, "The last reload was refused") {
		t.Error("the landing page does not show that a reload was refused")
	}
	// All other accounts go on, so nothing is requested again.
	simtest.WriteFile(t, filepath.Join(more, "lab"), simtest.LabToken)
	a.ConfigFile(dir, map[string]string{"main": simtest.MainToken}, settings+"watches: [{name: gpu, gpu: true}]\n")
	p.reload()
	simtest.Eventually(t, "the new account is exposed", func() bool { return len(p.scrape().CollectorSuccess()) == len(success(1, "main", "lab")) })
	page = p.scrape()
	simtest.AssertEqual(t, "collectors", page.CollectorSuccess(), success(1, "main", "lab"))
	simtest.AssertEqual(t, "plans of the new watch", page.Values[`server_rental_watch_plans{watch="gpu"}`], 2.0)
	if page.Values[reloadOK] != 1 || page.Values[reloadedAt] <= first.Values[reloadedAt] {
		t.Errorf("reload: got %v at %v, before it %v", page.Values[reloadOK], page.Values[reloadedAt], first.Values[reloadedAt])
	}
	simtest.Eventually(t, "all requests have responses", a.Idle)
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

// TestWarnings has settings that are valid but risky: a token file that every user can access,
// through a link, at start and after a reload, and TLS without verification. Access of the group
// is usual in Kubernetes.
func TestWarnings(t *testing.T) {
	t.Parallel()
	a, dir := startAPI(t), t.TempDir()
	token := filepath.Join(dir, "lab.token")
	file := a.ConfigFile(dir, simtest.Tokens(), hourly())
	if err := errors.Join(os.Rename(token, token+".target"), os.Symlink(token+".target", token)); err != nil {
		t.Fatal(err)
	}
	var p *program
	for _, mode := range []os.FileMode{0o644, 0o640, 0o602} {
		if err := os.Chmod(token, mode); err != nil {
			t.Fatal(err)
		}
		if p == nil {
			p = start(t, "--config.file="+file)
		} else {
			p.reload()
		}
	}
	simtest.WriteFile(t, file, "api: {base_url: 'https://rental.example/api/v1', http: {tls_config: {insecure_skip_verify: true}}}\n")
	p.reload()
	simtest.AssertEqual(t, "warnings", warnings(p, "token file can be read by others"), []string{"account=lab mode=0644", "account=lab mode=0602"})
	simtest.AssertEqual(t, "warnings", warnings(p, "certificate of the API is not verified"), []string{"field=api.http.tls_config.insecure_skip_verify"})
}

// warnings returns what the log says after a message.
func warnings(p *program, msg string) (all []string) {
	for line := range strings.Lines(p.log.String()) {
		if _, warning, found := strings.Cut(line, fmt.Sprintf("msg=%q ", msg)); found {
			all = append(all, strings.TrimSpace(warning))
		}
	}
	return all
}
