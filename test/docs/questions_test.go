package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
	"github.com/server-rental-exporter/server_rental_exporter/test/internal/repo"
)

// TestQuestions evaluates each query of docs/metrics.md on the data of testdata/questions.yml. There
// the question stands in the place of the query, and " (2)" follows it for a second query. Each series is
// that of two exporters, and then of one whose label instance changes half way.
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
	input := regexp.MustCompile(`(?m)^( +- )\{series: '(.*)', values: '(.*)'\}$`)
	for name, values := range map[string]func(values []string) (a, b []string){
		"two exporters": func(v []string) (a, b []string) { return v, v },
		"another instance half way": func(v []string) (a, b []string) {
			half := len(v) / 2
			return append(slices.Clone(v[:half]), "stale"), append(slices.Repeat([]string{"_"}, half), v[half:]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			twice := input.ReplaceAllStringFunc(test, func(line string) string {
				m := input.FindStringSubmatch(line)
				a, b := values(expand(t, m[2]+" "+m[3]))
				series := strings.TrimSuffix(m[2], "}")
				return fmt.Sprintf("%[1]s{series: '%[2]s, instance=\"a\"}', values: '%[3]s'}\n%[1]s{series: '%[2]s, instance=\"b\"}', values: '%[4]s'}",
					m[1], series, strings.Join(a, " "), strings.Join(b, " "))
			})
			file := simtest.WriteFile(t, filepath.Join(t.TempDir(), "questions.yml"), twice)
			repo.Run(t, ".", repo.Program(t, "promtool"), "test", "rules", file)
		})
	}
}

// expand returns each value of a series of a unit test.
func expand(t *testing.T, series string) (all []string) {
	t.Helper()
	_, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(series)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		switch {
		case v.Omitted:
			all = append(all, "_")
		case value.IsStaleNaN(v.Value):
			all = append(all, "stale")
		default:
			all = append(all, strconv.FormatFloat(v.Value, 'f', -1, 64))
		}
	}
	return all
}
