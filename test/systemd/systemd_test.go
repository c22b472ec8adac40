// Package systemd_test checks the units with systemd's own tools. Packaging tests
// run them.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/repo"
)

const directory, service, socket = "deploy/systemd/", "server_rental_exporter.service", "server_rental_exporter.socket"

// analyze runs systemd-analyze and fails the test if that fails or warns.
func analyze(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(repo.Program(t, "systemd-analyze"), args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_COLORS=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %v\n%s%s", args, err, out, stderr.String())
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	args := []string{"verify", "--man=no", "--recursive-errors=no"}
	dir := t.TempDir()
	for _, unit := range []string{service, socket} {
		// The program is not installed, but systemd-analyze wants it to exist.
		text := strings.ReplaceAll(repo.Read(t, directory+unit), "/usr/bin/server_rental_exporter", "/bin/true")
		args = append(args, simtest.WriteFile(t, filepath.Join(dir, unit), text))
	}
	analyze(t, args...)
}

// TestSecurity asserts an exposure below 2.0, of 10.
func TestSecurity(t *testing.T) {
	t.Parallel()
	analyze(t, "security", "--offline=true", "--threshold=19", "--no-pager", repo.Path(t, directory+service))
}
