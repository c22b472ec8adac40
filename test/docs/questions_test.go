package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestQuestions evaluates each query of docs/metrics.md on the data of testdata/questions.yml. There
// the question stands in the place of the query, and " (2)" follows it for a second query.
func TestQuestions(t *testing.T) {
	test := repo.Read(t, "test/docs/testdata/questions.yml")
	query := regexp.MustCompile("(?s)```promql\n(.*?)```")
	for _, section := range strings.Split(repo.Read(t, "docs/metrics.md"), "\n**")[1:] {
		question, text, _ := strings.Cut(section, "**")
		for i, q := range query.FindAllStringSubmatch(text, -1) {
			name := fmt.Sprintf("expr: %q\n", question)
			if i > 0 {
				name = fmt.Sprintf("expr: \"%s (%d)\"\n", question, i+1)
			}
			if !strings.Contains(test, name) {
				t.Errorf("%s has no test", name)
			}
			test = strings.ReplaceAll(test, name, fmt.Sprintf("expr: %q\n", q[1]))
		}
	}
	file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "questions.yml"), test)
	repo.Run(t, ".", repo.Program(t, "promtool"), "test", "rules", file)
}
