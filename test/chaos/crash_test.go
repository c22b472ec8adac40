//go:build unix

package chaos_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// writableFiles lists the regular files that a process has open for writing.
func writableFiles(t *testing.T, pid int) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d", pid)
	entries, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Skipf("no /proc: %v", err)
	}
	var found []string
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, "fd", entry.Name()))
		if err != nil || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "/dev/") {
			continue // closed meanwhile, or not a file
		}
		raw, err := os.ReadFile(filepath.Join(dir, "fdinfo", entry.Name()))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(raw), "flags:")
		flags, err := strconv.ParseUint(strings.Fields(after)[0], 8, 64)
		if err != nil || flags&syscall.O_ACCMODE != syscall.O_RDONLY {
			found = append(found, target)
		}
	}
	return found
}

// TestWritesNothing: the exporter opens no file for writing, and works if it cannot
// write: a limit of 0 bytes for each file stands for a full disk and for a read-only
// file system.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit")
	}
	api, dir := simtest.Start(t, simulator.Options{}), t.TempDir()
	config := api.ConfigFile(dir, simtest.Tokens(), "")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	cmd := exec.Command(prlimit, "--fsize=0", simtest.Binary(t), "--config.file="+config, "--web.listen-address=127.0.0.1:0")
	cmd.Dir = dir
	p := simtest.StartCommand(t, cmd)
	p.WaitServing()
	waitWorking(p)
	for _, path := range []string{"/", "/metrics", "/-/ready"} {
		simtest.AssertEqual(t, path, p.Get(path).Status, http.StatusOK)
	}
	p.Signal(syscall.SIGHUP)
	p.Eventually("reload", func() bool { return strings.Contains(p.Log.String(), "configuration reloaded") })
	if files := writableFiles(t, p.Cmd.Process.Pid); len(files) > 0 {
		t.Errorf("open for writing: %v", files)
	}
}

// TestLogCannotBeWritten: a log on a full disk stops nothing.
func TestLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	api, address := simtest.Start(t, simulator.Options{}), simtest.FreeAddress(t)
	cmd := exec.Command("sh", "-c", `exec "$@" >/dev/full 2>&1`, "sh", simtest.Binary(t), "--log.level=debug",
		"--config.file="+api.ConfigFile(t.TempDir(), simtest.Tokens(), ""), "--web.listen-address="+address)
	p := simtest.StartCommand(t, cmd)
	p.URL = "http://" + address
	p.Eventually("serving", func() bool {
		_, err := simtest.Do(http.DefaultClient, http.MethodGet, p.URL+"/-/healthy")
		return err == nil
	})
	waitWorking(p)
	p.Signal(syscall.SIGTERM)
	simtest.AssertEqual(t, "exit status", p.Wait(), 0)
}

// TestConfigurationReplaced replaces the file by rename while it is read: each reload
// succeeds and causes no request. Then it is written in parts: whatever is read, the
// exporter continues, and has the last configuration at the end.
func TestConfigurationReplaced(t *testing.T) {
	t.Parallel()
	api, dir := simtest.Start(t, simulator.Options{}), t.TempDir()
	config := api.ConfigFile(dir, simtest.Tokens(), hourly())
	whole, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	p := startReady(t, nil, "--config.file="+config, "--web.enable-lifecycle")
	reload := func() int {
		r, err := simtest.Do(http.DefaultClient, http.MethodPost, p.URL+"/-/reload")
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	p.Eventually("a response to every request", api.Idle)
	requests := len(api.Requests())

	ctx, stop := context.WithCancel(t.Context())
	var replacing sync.WaitGroup
	replacing.Go(func() {
		next := filepath.Join(dir, "next")
		for i := 0; ctx.Err() == nil; i++ {
			if os.WriteFile(next, fmt.Appendf(whole, "# %d\n", i), 0o600) != nil || os.Rename(next, config) != nil {
				t.Error("cannot replace the configuration")
				return
			}
		}
	})
	for range 100 {
		simtest.AssertEqual(t, "status while the file is replaced", reload(), http.StatusOK)
	}
	stop()
	replacing.Wait()
	api.AssertNoRequests(requests)

	refused := 0
	for i := 0; i < len(whole); i += 1 + i/8 {
		simtest.WriteFile(t, config, string(whole[:i]))
		if reload() != http.StatusOK {
			refused++
		}
		simtest.AssertEqual(t, "/metrics with a part of a configuration", p.Get("/metrics").Status, http.StatusOK)
	}
	if refused == 0 {
		t.Error("no part of a configuration was refused")
	}
	simtest.WriteFile(t, config, string(whole))
	simtest.AssertEqual(t, "status with the whole configuration", reload(), http.StatusOK)
	p.Eventually("every collector of both accounts works", func() bool {
		page := p.Scrape()
		return failing(page) == 0 && len(page.WithPrefix("server_rental_account_info{")) == 2
	})
}
