//go:build e2e

// Package recipe follows the recipes of CONTRIBUTING.md in a copy of the repository.
package recipe

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// TestProjectHome moves a copy of the project, which then names the old place nowhere and still
// compiles.
func TestProjectHome(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("git", "clone", "--quiet", simtest.Root(t), ".")
	run("git", "config", "user.name", "test")
	old := run("go", "list", "-m")
	run("make", "project-home", "REPOSITORY=git.example.org/fork/rental_exporter", "REGISTRY=registry.example.org/team/images")
	simtest.AssertEqual(t, "module", run("go", "list", "-m"), "git.example.org/fork/rental_exporter")
	host, path, _ := strings.Cut(old, "/")
	owner, _, _ := strings.Cut(path, "/")
	left, _ := exec.Command("git", "-C", dir, "grep", "-nIE", path+`|owner: `+owner+`|(`+host+`|ghcr\.io)/`+owner).CombinedOutput() // status 1: nothing
	simtest.AssertEqual(t, "lines that name the old place", string(left), "")
	simtest.AssertEqual(t, "files that are not formatted", run("gofmt", "-l", "."), "")
	run("go", "build", "./...")
	run("go", "vet", "./exporter")
	run("go", "-C", "test", "vet", "./docs")
	if page := run("grep", "-rh", "runbook_url:", "alerts/status.rules.yml"); !strings.Contains(page, "https://git.example.org/fork/rental_exporter/blob/main/alerts/README.md#") {
		t.Errorf("runbooks: %s", page)
	}
}
