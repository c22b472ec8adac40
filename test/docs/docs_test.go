// Package docs_test checks the repository's documents: that relative links and their
// headings exist, that each command they show is run by a test or says why not,
// and that queries give what they promise.
package docs_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/test/internal/promqltest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

func TestLinks(t *testing.T) {
	all := repo.Documents(t)
	for path, doc := range all {
		for _, link := range doc.Links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: link %s: %v", path, link, err)
				continue
			}
			if u.Scheme != "" {
				continue // the link leads to another site
			}
			target := path
			if u.Path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(path), u.Path))
			}
			if _, err := os.Stat(repo.Path(t, target)); err != nil {
				t.Errorf("%s: link %s: no such file", path, link)
			}
			if u.Fragment != "" && !all[target].Anchor[u.Fragment] {
				t.Errorf("%s: link %s: %s has no such heading", path, link, target)
			}
		}
	}
}

// TestCommands checks that a comment before each block of shell commands names what tests
// them ("tested: TestName" or "tested: make TARGET", which .ci/run calls), or says why
// nothing does ("not tested: reason").
func TestCommands(t *testing.T) {
	var source strings.Builder
	repo.Walk(t, "_test.go", func(_, content string) { source.WriteString(content) })
	ci := repo.Read(t, ".ci/run")
	for path, doc := range repo.Documents(t) {
		for _, block := range doc.Blocks {
			if !slices.Contains([]string{"sh", "bash", "console"}, block.Language) {
				continue
			}
			first, _, _ := strings.Cut(block.Text, "\n")
			if strings.Contains(block.Text, "sudo cp ") {
				t.Errorf("%s: commands %q: cp keeps the mode of a strict umask, which services cannot read: use install -m", path, first)
			}
			if reason, ok := strings.CutPrefix(block.Comment, "not tested: "); ok && reason != "" {
				continue
			}
			names, ok := strings.CutPrefix(block.Comment, "tested: ")
			if !ok {
				t.Errorf("%s: commands %q: no comment says how they are tested", path, first)
				continue
			}
			for name := range strings.SplitSeq(names, ", ") {
				isStep := strings.HasPrefix(name, "make ") && strings.Contains(ci, name)
				if !isStep && !strings.Contains(source.String(), "\nfunc "+name+"(t *testing.T)") {
					t.Errorf("%s: commands %q: neither a test nor a step of .ci/run: %s", path, first, name)
				}
			}
		}
	}
}

// TestHonorLabels checks that in each configuration a label of the target cannot rename one of the
// metrics, by which alerts group.
func TestHonorLabels(t *testing.T) {
	job := regexp.MustCompile(`job_name: server_rental\b(.*\n?.*)`)
	for _, path := range []string{"README.md", "docs/notifications.md", "deploy/compose/prometheus.yml", "deploy/prometheus/service-discovery.yml"} {
		if found := job.FindString(repo.Read(t, path)); !strings.Contains(found, "honor_labels: true") {
			t.Errorf("%s: got %q, want honor_labels: true", path, found)
		}
	}
}

// TestQueries checks that each PromQL example names only metrics and labels that the
// exporter or the rules have.
func TestQueries(t *testing.T) {
	known, queries := promqltest.Exported(), 0
	known.AddRecorded(t)
	check := func(path, query string) {
		queries++
		if err := known.Check(query); err != nil {
			t.Errorf("%s: %s: %v", path, query, err)
		}
	}
	for path, doc := range repo.Documents(t) {
		for _, block := range doc.Blocks {
			if block.Language == "promql" {
				check(path, block.Text)
			}
		}
	}
	_, runbook, _ := strings.Cut(repo.Read(t, "alerts/README.md"), "\n## Runbook\n")
	for _, code := range regexp.MustCompile("`((sort\\()?server_rental_[^`]*)`").FindAllStringSubmatch(runbook, -1) {
		check("runbook", code[1])
	}
	if queries < 10 {
		t.Errorf("only %d queries found", queries)
	}
}
