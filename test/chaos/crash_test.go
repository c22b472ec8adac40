package campaign_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"server_rental_exporter/internal/simulator"
)

// What one start asks where an account's history fits a page: every resource once.
func oneStart() map[string]int { return map[string]int{"": 4, mainToken: 6, labToken: 6} }

// TestKilledInALoop: nothing is kept on disk, so that a new process does not know
// what its predecessor asked. Each start asks every resource once; 14 starts
// within a minute stay within the 59 public requests that the API allows, 20 within
// the 120 of a token.
func TestKilledInALoop(t *testing.T) {
	t.Parallel()
	const starts = 14
	r := newRental(t)
	config := "--config.file=" + r.configuration(t, t.TempDir(), both(), hourly)
	began := time.Now()
	for i := range starts {
		before := r.asked()
		e := launch(t, nil, config)
		all := func() bool {
			now := r.asked()
			for token, n := range oneStart() {
				if now[token]-before[token] < n {
					return false
				}
			}
			return r.idle()
		}
		if i%2 == 0 { // killed once all is there, else at any moment before
			eventually(t, "all was asked", all)
		} else {
			time.Sleep(rand.N(60 * time.Millisecond))
		}
		e.signal(syscall.SIGKILL)
		<-e.ended
	}
	for token, n := range r.asked() {
		if most := starts * oneStart()[token]; n > most {
			t.Errorf("%d starts: %d requests with token %q, more than %d", starts, n, token, most)
		}
	}
	t.Logf("%d starts in %v: requests by token %v", starts, time.Since(began).Round(time.Millisecond), r.asked())
	for _, q := range r.Requests() {
		if q.Status == http.StatusTooManyRequests {
			t.Fatalf("refused: %s", q.Path)
		}
	}
}

// TestLongHistoryStarts: a start that reads a long history uses no more than
// rate_limit.account requests in its first minute, so that two starts at the
// defaults stay within the 120 of a token.
func TestLongHistoryStarts(t *testing.T) {
	t.Parallel()
	r := newRental(t)
	r.Change(func(w *simulator.World) {
		w.Accounts[mainToken].Transactions = simulator.Transactions(9_000, time.Now())
	})
	config := "--config.file=" + r.configuration(t, t.TempDir(), map[string]string{"main": mainToken}, "")
	for range 2 {
		before := r.asked()[mainToken]
		e := launch(t, nil, config)
		// The walk may use what the budget of 60 leaves besides the 10 that refreshes may need.
		eventually(t, "the walk waits for its budget", func() bool { return r.asked()[mainToken]-before >= 50 })
		e.signal(syscall.SIGKILL)
		<-e.ended
		if n := r.asked()[mainToken] - before; n > 60 {
			t.Errorf("one start: %d requests with a token, more than 60", n)
		}
	}
	if got := r.asked()[mainToken]; got > 120 {
		t.Errorf("two starts: %d requests, more than 120", got)
	}
}

// TestTerminatedWhileFetching: a fetch that hangs is cut off, and is no failure.
func TestTerminatedWhileFetching(t *testing.T) {
	t.Parallel()
	r := newRental(t)
	r.Inject(simulator.Fault{Kind: simulator.Hang})
	e := start(t, nil, "--log.level=debug", "--config.file="+r.configuration(t, t.TempDir(), both(), ""))
	eventually(t, "requests are under way", func() bool { return len(r.Requests()) > 3 })
	began := time.Now()
	e.signal(syscall.SIGTERM)
	if got := e.wait(); got != 0 {
		t.Errorf("got exit status %d, want 0; log:\n%s", got, e.log)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if strings.Contains(e.log.String(), "level=error") {
		t.Errorf("the end is logged as a failure:\n%s", e.log)
	}
}

// TestTerminatedWhileScrapedSlowly: whoever reads a byte a second is cut off after 20 seconds.
func TestTerminatedWhileScrapedSlowly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for 20 seconds")
	}
	r := newRental(t)
	r.Change(func(w *simulator.World) { w.Accounts[mainToken].Servers = simulator.Servers(10_000, time.Now()) })
	e := ready(t, nil, "--config.file="+r.configuration(t, t.TempDir(), both(), ""))
	n := slowScraper(t, e.address)
	eventually(t, "the scrape is under way", func() bool { return n.Load() > 0 })
	began := time.Now()
	e.signal(syscall.SIGTERM)
	if got := e.wait(); got != 1 {
		t.Errorf("got exit status %d, want 1: a scrape was cut off; log:\n%s", got, e.log)
	}
	if took := time.Since(began); took < 15*time.Second || took > 30*time.Second {
		t.Errorf("it took %v to end, want 20 s", took)
	}
}

// writable lists the regular files that a process has open for writing.
func writable(t *testing.T, pid int) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	var found []string
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "/dev/") {
			continue // closed meanwhile, or no file
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%s", pid, entry.Name()))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if flags, is := strings.CutPrefix(line, "flags:"); is {
				n, err := strconv.ParseUint(strings.TrimSpace(flags), 8, 64)
				if err != nil || n&syscall.O_ACCMODE != syscall.O_RDONLY {
					found = append(found, target)
				}
			}
		}
	}
	return found
}

// TestWritesNothing: the exporter opens no file for writing and works where none
// can be written: a limit of 0 bytes for every file stands for a full disk and for
// a read-only root file system.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit")
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	r, dir := newRental(t), t.TempDir()
	config := r.configuration(t, dir, both(), "")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(prlimit, "--fsize=0", path, "--config.file="+config, "--web.enable-lifecycle", "--web.listen-address=127.0.0.1:0")
	cmd.Dir = dir
	e := launchAs(t, cmd, nil).listens()
	eventually(t, "every collector works", func() bool { return failing(e.scrape()) == 0 })
	for _, path := range []string{"/", "/metrics", "/-/ready"} {
		if status, _ := e.get(path); status != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", path, status)
		}
	}
	e.signal(syscall.SIGHUP)
	eventually(t, "the reload is logged", func() bool { return strings.Contains(e.log.String(), "configuration reloaded") })
	if got := writable(t, e.cmd.Process.Pid); len(got) > 0 {
		t.Errorf("open for writing: %v", got)
	}
}

// failing counts the collectors that do not work, those that were not tried yet included.
func failing(page values) int {
	n := len(page.with("server_rental_exporter_collector_interval_seconds"))
	for _, success := range page.with("server_rental_exporter_collector_success") {
		n -= int(success)
	}
	return n
}

// TestLogCannotBeWritten: a log on a full disk stops nothing.
func TestLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRental(t)
	cmd := exec.Command(path, "--log.level=debug", "--config.file="+r.configuration(t, t.TempDir(), both(), ""), "--web.listen-address="+address)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, full, full
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	e := &exporter{t: t, cmd: cmd, out: &lines{}, log: &lines{}, address: address, ended: ended}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	eventually(t, "every collector works", func() bool {
		status, body := e.get("/metrics")
		if status != http.StatusOK {
			return false
		}
		page, err := parse([]byte(body), asText)
		return err == nil && failing(page) == 0
	})
	e.signal(syscall.SIGTERM)
	if got := e.wait(); got != 0 {
		t.Errorf("got exit status %d, want 0", got)
	}
}

// TestSecretSwapped replaces a token as Kubernetes does: the file is a link
// through ..data, a link to a folder, which is renamed over.
func TestSecretSwapped(t *testing.T) {
	t.Parallel()
	r, dir := newRental(t), t.TempDir()
	mount := filepath.Join(dir, "secret")
	put := func(generation, token string) {
		folder := filepath.Join(mount, generation)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "token"), token)
		next := filepath.Join(mount, "..data_tmp")
		if err := os.Symlink(generation, next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(mount, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", mainToken)
	if err := os.Symlink("..data/token", filepath.Join(mount, "token")); err != nil {
		t.Fatal(err)
	}
	config := write(t, filepath.Join(dir, "rental.yml"), fmt.Sprintf("api: {base_url: %q}\naccounts: [{name: main, token_file: secret/token}]\n", r.base)+hourly)
	e := ready(t, nil, "--config.file="+config)
	eventually(t, "every collector works", func() bool { return failing(e.scrape()) == 0 })

	const next = "secret-token-of-main-2"
	r.Change(func(w *simulator.World) {
		w.Accounts[next] = w.Accounts[mainToken]
		delete(w.Accounts, mainToken)
	})
	put("..2", "secret-token-of-nobody")
	e.signal(syscall.SIGHUP)
	// A reload keeps what works; a new interval has the collectors ask, and be refused.
	write(t, config, strings.Replace(fmt.Sprintf("api: {base_url: %q}\naccounts: [{name: main, token_file: secret/token}]\n", r.base)+hourly, "account: {interval: 1h}", "account: {interval: 2s}", 1))
	e.signal(syscall.SIGHUP)
	const rejected = `server_rental_exporter_api_token_rejected{account="main"}`
	eventually(t, "the wrong token is rejected", func() bool { return e.scrape()[rejected] == 1 })
	put("..3", next)
	eventually(t, "the right token is used", func() bool { return e.scrape()[rejected] == 0 })
	eventually(t, "every collector works", func() bool { return failing(e.scrape()) == 0 })
}

// TestConfigurationReplaced has the file replaced atomically, again and again,
// while it is read: each reload succeeds. Then it is written in halves: whatever
// is read, the exporter goes on, and has the last configuration at the end.
func TestConfigurationReplaced(t *testing.T) {
	t.Parallel()
	r, dir := newRental(t), t.TempDir()
	config := r.configuration(t, dir, both(), hourly)
	whole, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	e := ready(t, nil, "--config.file="+config, "--web.enable-lifecycle")
	reload := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+e.address+"/-/reload", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	eventually(t, "all requests are answered", r.idle)
	asked := r.asked()

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := filepath.Join(dir, fmt.Sprint("next", i%2))
			if os.WriteFile(next, append(whole, fmt.Sprintf("# %d\n", i)...), 0o600) != nil || os.Rename(next, config) != nil {
				t.Error("the configuration cannot be replaced")
				return
			}
		}
	}()
	for range 100 {
		if got := reload(); got != http.StatusOK {
			t.Errorf("replaced atomically: got status %d, want 200; log:\n%s", got, tail(e.log.String()))
			break
		}
	}
	close(stop)
	<-stopped
	if got := r.asked(); !reflect.DeepEqual(got, asked) {
		t.Errorf("requests by token after 100 reloads of the same: got %v, want %v", got, asked)
	}

	refused := 0
	for i := 0; i < len(whole); i += 1 + i/8 {
		write(t, config, string(whole[:i]))
		if got := reload(); got != http.StatusOK {
			refused++
		}
		if status, _ := e.get("/metrics"); status != http.StatusOK {
			t.Errorf("/metrics with half a configuration: got status %d", status)
		}
	}
	if refused == 0 {
		t.Error("no half of a configuration was refused")
	}
	write(t, config, string(whole))
	if got := reload(); got != http.StatusOK {
		t.Errorf("written to its end: got status %d, want 200", got)
	}
	eventually(t, "every collector works", func() bool {
		page := e.scrape()
		return failing(page) == 0 && len(page.with("server_rental_account_info")) == 2
	})
}
