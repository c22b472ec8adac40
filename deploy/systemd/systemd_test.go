// Package systemd_test checks the units with systemd's own tools. Packaging tests
// run them.
package systemd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const service, socket = "server_rental_exporter.service", "server_rental_exporter.socket"

// analyze runs systemd-analyze and fails the test if that fails or warns.
func analyze(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("systemd-analyze is not installed")
		}
		t.Skip("systemd-analyze is not installed")
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_COLORS=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %v\n%s%s", args, err, out, stderr.String())
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, unit := range []string{service, socket} {
		content, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// The program is not installed, but systemd-analyze wants it to exist.
		content = []byte(strings.ReplaceAll(string(content), "/usr/bin/server_rental_exporter", "/bin/true"))
		if err := os.WriteFile(filepath.Join(dir, unit), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	analyze(t, "verify", "--man=no", "--recursive-errors=no", filepath.Join(dir, service), filepath.Join(dir, socket))
}

// TestSecurity asserts an exposure below 2.0, of 10.
func TestSecurity(t *testing.T) {
	t.Parallel()
	analyze(t, "security", "--offline=true", "--threshold=19", "--no-pager", service)
}
