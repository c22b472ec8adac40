//go:build e2e

// Package recipe follows the recipes of CONTRIBUTING.md in a copy of the repository.
package recipe

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestProjectHome moves a copy of the project, which then names the old place nowhere and still
// compiles.
func TestProjectHome(t *testing.T) {
	c := tree{t, t.TempDir()}
	c.run("git", "clone", "--quiet", simtest.Root(t), ".")
	c.run("git", "config", "user.name", "test")
	old := c.run("go", "list", "-m")
	c.run("make", "project-home", "REPOSITORY=git.example.org/fork/rental_exporter", "REGISTRY=registry.example.org/team/images")
	simtest.AssertEqual(t, "module", c.run("go", "list", "-m"), "git.example.org/fork/rental_exporter")
	host, path, _ := strings.Cut(old, "/")
	owner, _, _ := strings.Cut(path, "/")
	left, _ := exec.Command("git", "-C", c.dir, "grep", "-nIE", path+`|owner: `+owner+`|(`+host+`|ghcr\.io)/`+owner).CombinedOutput() // status 1: nothing
	simtest.AssertEqual(t, "lines that name the old place", string(left), "")
	simtest.AssertEqual(t, "files that are not formatted", c.run("gofmt", "-l", "."), "")
	c.run("go", "build", "./...")
	c.run("go", "vet", "./exporter")
	c.run("go", "-C", "test", "vet", "./docs")
	if page := c.run("grep", "-rh", "runbook_url:", "alerts/status.rules.yml"); !strings.Contains(page, "https://git.example.org/fork/rental_exporter/blob/main/alerts/README.md#") {
		t.Errorf("runbooks: %s", page)
	}
}
