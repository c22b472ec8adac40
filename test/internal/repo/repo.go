// Package repo gives tests the files of the repository and the programs of the machine.
package repo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// Path returns the absolute path of a file, from its path in the repository.
func Path(t testing.TB, path string) string {
	t.Helper()
	return filepath.Join(simtest.Root(t), path)
}

// Glob returns the absolute paths of the files that match a pattern, at least one, in order.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(Path(t, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s: %v", pattern, err)
	}
	return files
}

// Read returns the text of a file, from its path in the repository.
func Read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(Path(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ReadYAML decodes a YAML or JSON file, from its absolute path.
func ReadYAML(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Program returns the path of the first of several programs that is installed. If none is,
// the test is skipped, except in CI.
func Program(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", names[0])
	}
	t.Skipf("%s is not installed", names[0])
	return ""
}

// Run runs a command in a directory and returns its output, without space around it. The command
// must succeed. What it prints to standard error is in the log of the test.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) // also after the test, to clean up
	cmd.Dir, cmd.Stderr = dir, t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Copy copies the files that git knows, as they are, to a new directory and returns its path.
func Copy(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Run(t, Path(t, "."), "bash", "-c", `git ls-files -z | xargs -0 cp --no-dereference --parents -t "$0"`, dir)
	return dir
}
