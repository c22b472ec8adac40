package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

const casesFile = "testdata/load.txt"

// loadCase is a section of casesFile without its outcome.
type loadCase string

// readCases returns the sections of casesFile. The first is a comment.
func readCases(t *testing.T) []loadCase {
	t.Helper()
	content, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases []loadCase
	input := regexp.MustCompile(`(?m)^=> .*\n`).ReplaceAllString(string(content), "")
	for section := range strings.SplitSeq(input, "\n-- ") {
		cases = append(cases, loadCase(section))
	}
	return cases
}

// load loads the case's command line and file.
func (c loadCase) load(t *testing.T) (*Config, error) {
	t.Helper()
	commandLine := "--config.file=rental.yml"
	_, file, _ := strings.Cut(string(c), " --\n")
	if args, ok := strings.CutPrefix(file, "$"); ok {
		commandLine, file, _ = strings.Cut(args, "\n")
	}
	env := map[string]string{}
	var args []string
	for word := range strings.FieldsSeq(commandLine) {
		if strings.HasPrefix(word, "--") {
			args = append(args, word)
			continue
		}
		name, quoted, _ := strings.Cut(word, "=")
		value, err := strconv.Unquote(`"` + quoted + `"`)
		if err != nil {
			t.Fatal(err)
		}
		env[name] = value
	}
	simtest.WriteFile(t, "rental.yml", file)
	return load(t, parseFlags(t, env, args...))
}

// TestGoldenLoad compares the outcome of each case in casesFile: the errors, or the values in
// which the configuration differs from that of the first case, before (-) and after.
func TestGoldenLoad(t *testing.T) {
	path, err := filepath.Abs(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	cases := readCases(t)
	enterConfigDir(t)
	got := string(cases[0])
	var defaults []string
	for _, c := range cases[1:] {
		config, err := c.load(t)
		outcome := fmt.Sprint(err)
		if err == nil {
			lines := flatten(t, config)
			outcome = cmp.Or(without(defaults, lines, "- ")+without(lines, defaults, ""), "defaults")
			if defaults == nil {
				defaults = lines
			}
		}
		got += "\n-- " + string(c) + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(outcome, "\n"), "=> ") + "\n"
	}
	simtest.Golden(t, path, got)
}

// without returns the lines of a that b does not have, with a prefix.
func without(a, b []string, prefix string) string {
	var text strings.Builder
	for _, line := range a {
		if !slices.Contains(b, line) {
			text.WriteString(prefix + line + "\n")
		}
	}
	return text.String()
}

// flatten returns a line for each part of a configuration.
func flatten(t *testing.T, config *Config) []string {
	t.Helper()
	lines := []string{fmt.Sprint("base URL: ", config.API.BaseURL), fmt.Sprint("timeout: ", config.API.Timeout)}
	for i, account := range config.Accounts {
		lines = append(lines, fmt.Sprintf("account %d: %s %s", i, account.Name, account.TokenFile))
	}
	for _, r := range collector.Resources() {
		c := config.Collectors[r.Name]
		lines = append(lines, fmt.Sprintf("%s: {%t %s %s %s}", r.Name, c.Enabled, c.Interval, c.MaxAge, c.SoldOutInterval))
	}
	for i, watch := range config.Watches {
		content, err := json.Marshal(watch)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("watch %d: %s", i, regexp.MustCompile(`"\w+":null,?|,"\w+":null`).ReplaceAll(content, nil)))
	}
	http, err := yaml.Marshal(config.API.HTTP.HTTPClientConfig) //nolint:gosec // its secrets marshal as <secret>
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, strings.Split(strings.TrimSpace(string(http)), "\n")...)
	return append(lines, fmt.Sprint("rate limit: ", config.API.RateLimit), fmt.Sprint("shard: ", config.Shard))
}
