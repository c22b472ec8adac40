// Package docs_test checks the repository's documents: that relative links and their
// headings exist, that each command they show is run by a test or says why not,
// and that queries give what they promise.
package docs_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	var source strings.Builder
	if err := markdown.Walk(root, func(path string) error {
		if strings.HasSuffix(path, "_test.go") {
			source.WriteString(repo.Read(t, path))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	ci := repo.Read(t, ".ci/run")
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
				isStep := strings.HasPrefix(name, "make ") && strings.Contains(ci, name)
				if !isStep && !strings.Contains(source.String(), "\nfunc "+name+"(t *testing.T)") {
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
