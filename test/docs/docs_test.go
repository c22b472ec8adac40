// Package docs_test checks the repository's documents: that relative links and their
// headings exist, that each command they show is run by a test or says why not, that
// queries give what they promise, and that the log messages are explained.
package docs_test

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/markdown"
	"server_rental_exporter/test/internal/promqltest"
	"server_rental_exporter/test/internal/repo"
)

const root = "../.."

func documents(t *testing.T) map[string]markdown.Document {
	t.Helper()
	all, err := markdown.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d documents found", len(all))
	}
	return all
}

func TestLinks(t *testing.T) {
	all := documents(t)
	for _, doc := range all {
		for _, link := range doc.Links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: link %s: %v", doc.Path, link, err)
				continue
			}
			if u.Scheme != "" {
				continue // of another site
			}
			target := doc.Path
			if u.Path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(doc.Path), u.Path))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: link %s: no such file", doc.Path, link)
			}
			if u.Fragment != "" && !all[target].Anchor[u.Fragment] {
				t.Errorf("%s: link %s: %s has no such heading", doc.Path, link, target)
			}
		}
	}
}

// TestCommands checks that a comment before each block of shell commands names what tests
// them ("tested: TestName" or "tested: make TARGET", which .ci/run calls), or says why
// nothing does ("not tested: reason").
func TestCommands(t *testing.T) {
	tests := map[string]bool{}
	for _, source := range goFiles(t) {
		for _, match := range testName.FindAllStringSubmatch(source, -1) {
			tests[match[1]] = true
		}
	}
	steps := strings.Split(repo.Read(t, ".ci/run"), "\n")
	for _, doc := range documents(t) {
		for _, block := range doc.Blocks {
			if !slices.Contains([]string{"sh", "bash", "console"}, block.Language) {
				continue
			}
			first, _, _ := strings.Cut(block.Text, "\n")
			if reason, ok := strings.CutPrefix(block.Comment, "not tested: "); ok && reason != "" {
				continue
			}
			names, ok := strings.CutPrefix(block.Comment, "tested: ")
			if !ok {
				t.Errorf("%s: commands %q: no comment says how they are tested", doc.Path, first)
				continue
			}
			for name := range strings.SplitSeq(names, ", ") {
				step := func(line string) bool { return strings.HasPrefix(name, "make ") && strings.Contains(line, name) }
				if !tests[name] && !slices.ContainsFunc(steps, step) {
					t.Errorf("%s: commands %q: neither a test nor a step of .ci/run: %s", doc.Path, first, name)
				}
			}
		}
	}
}

// TestQueries checks that each PromQL example names only metrics and labels that the
// exporter has.
func TestQueries(t *testing.T) {
	known, queries := promqltest.Exported(), 0
	for _, doc := range documents(t) {
		for _, block := range doc.Blocks {
			if block.Language != "promql" {
				continue
			}
			queries++
			if _, err := known.Check(block.Text); err != nil {
				t.Errorf("%s: %s: %v", doc.Path, block.Text, err)
			}
		}
	}
	if queries < 10 {
		t.Errorf("only %d queries found", queries)
	}
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// goFiles returns the Go source of the repository by path.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := markdown.Walk(root, func(path string) error {
		if filepath.Ext(path) == ".go" {
			all[path] = repo.Read(t, path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// logCall matches the beginning of a call that logs, not of one that passes on what another
// logs; logMessage matches a call with a level and a message that is constant but for the
// name of the program.
var (
	logCall    = regexp.MustCompile(`\.Log\("`)
	logMessage = regexp.MustCompile(`level\.(\w+)\([\w.]+\)\.Log\("msg", "([^"]+)"(\+name)?[,)]`)
	logRow     = regexp.MustCompile("(?m)^\\| (debug|info|warn|error) \\| `([^`]+)` \\|")
)

// TestLogMessages checks that operations.md explains each message that the program logs,
// with its level, and no other.
func TestLogMessages(t *testing.T) {
	logged, explained := map[string]bool{}, map[string]bool{}
	for path, source := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "internal/simulator/") {
			continue
		}
		messages := logMessage.FindAllStringSubmatch(source, -1)
		if calls := len(logCall.FindAllString(source, -1)); calls != len(messages) {
			t.Errorf("%s: %d of %d calls log a constant message", path, len(messages), calls)
		}
		for _, m := range messages {
			if m[3] != "" {
				m[2] += "server_rental_exporter"
			}
			logged[strings.ToLower(m[1])+" "+m[2]] = true
		}
	}
	for _, m := range logRow.FindAllStringSubmatch(repo.Read(t, "docs/operations.md"), -1) {
		explained[m[1]+" "+m[2]] = true
	}
	simtest.AssertEqual(t, "messages that docs/operations.md explains", slices.Sorted(maps.Keys(explained)), slices.Sorted(maps.Keys(logged)))
}
