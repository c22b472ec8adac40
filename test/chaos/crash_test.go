//go:build unix

package chaos_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"server_rental_exporter/internal/simulator"
	"server_rental_exporter/internal/simulator/simtest"
)

// TestWritesNothing: the exporter writes no file, and works and reloads if it cannot: a limit of 0 bytes
// for each file stands for a full disk and for a read-only file system, and its log is full.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if _, full := os.Stat("/dev/full"); err != nil || full != nil {
		t.Skip("no prlimit or no /dev/full")
	}
	api, dir, address := simtest.Start(t, simulator.Options{}), t.TempDir(), simtest.FreeAddress(t)
	config := api.ConfigFile(dir, simtest.Tokens(), "")
	files := func() []string {
		found, _ := filepath.Glob(filepath.Join(dir, "*")) // the pattern is valid
		return found
	}
	before := files()
	cmd := exec.Command("sh", "-c", `exec "$@" >/dev/full 2>&1`, "sh", prlimit, "--fsize=0", simtest.Binary(t),
		"--log.level=debug", "--config.file="+config, "--web.listen-address="+address)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "TMPDIR=" + dir}
	p := simtest.StartCommand(t, cmd)
	p.URL = "http://" + address
	p.Eventually("serving", func() bool {
		_, err := simtest.Do(http.DefaultClient, http.MethodGet, p.URL+"/-/healthy")
		return err == nil
	})
	p.Eventually("every collector works", func() bool { return failing(p.Scrape()) == 0 })
	loaded := func() float64 {
		return p.Scrape().Values["server_rental_exporter_config_last_reload_success_timestamp_seconds{}"]
	}
	started := loaded()
	p.Signal(syscall.SIGHUP)
	p.Eventually("reload", func() bool { return loaded() > started })
	for _, path := range []string{"/", "/metrics", "/-/ready"} {
		simtest.AssertEqual(t, path, p.Get(path).Status, http.StatusOK)
	}
	simtest.AssertEqual(t, "files", files(), before)
	p.Signal(syscall.SIGTERM)
	simtest.AssertEqual(t, "exit status", p.Wait(), 0)
}
