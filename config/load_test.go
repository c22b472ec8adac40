package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// commandLine and outcome match the comments at the end of a case in testdata/load.
var (
	commandLine = regexp.MustCompile(`(?m)^#\$(.*)$`)
	outcome     = regexp.MustCompile(`(?m)^#=> .*\n`)
)

// loadCase loads a configuration file with its command line.
func loadCase(t *testing.T, content string) (*Config, error) {
	t.Helper()
	words := "--config.file=rental.yml"
	if m := commandLine.FindStringSubmatch(content); m != nil {
		words = m[1]
	}
	env := map[string]string{}
	var args []string
	for word := range strings.FieldsSeq(words) {
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
	simtest.WriteFile(t, "rental.yml", content)
	return load(t, parseFlags(t, env, args...))
}

// TestGoldenLoad loads each case in testdata/load: a configuration file, named after its rule. The
// comments at its end are the command line (after #$, without it --config.file=rental.yml) and the
// outcome (after #=>, which -update rewrites): the faults of an invalid file, or the values in which a
// valid one differs from the defaults, before (-) and after.
func TestGoldenLoad(t *testing.T) {
	dir, err := filepath.Abs("testdata/load")
	if err != nil {
		t.Fatal(err)
	}
	enterConfigDir(t)
	defaults := flatten(t, mustLoad(t, parseFlags(t, nil, "--api.base-url="+baseURL)))
	for _, name := range []string{"flags", "settings", "yaml"} {
		path := filepath.Join(dir, name+".txtar")
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range archive.Files {
			t.Run(name+"/"+file.Name, func(t *testing.T) {
				config, err := loadCase(t, string(file.Data))
				if invalid := strings.HasPrefix(file.Name, "invalid-"); invalid != (err != nil) {
					t.Fatalf("got %v, which is not as the name says", err)
				}
				got := fmt.Sprint(err)
				if err == nil {
					lines := flatten(t, config)
					got = cmp.Or(without(defaults, lines, "- ")+without(lines, defaults, ""), "defaults")
				}
				got = outcome.ReplaceAllString(string(file.Data), "") + regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(got, "\n"), "#=> ") + "\n"
				if !*simtest.Update {
					simtest.AssertEqual(t, "case (-update rewrites it)", got, string(file.Data))
				}
				archive.Files[i].Data = []byte(got)
			})
		}
		if *simtest.Update {
			simtest.WriteFile(t, path, string(txtar.Format(archive)))
		}
	}
}

// TestLoadManyWatches has one more watch than is allowed.
func TestLoadManyWatches(t *testing.T) {
	t.Chdir(t.TempDir())
	content := "api: {base_url: " + baseURL + "}\nwatches:\n"
	for i := range 101 {
		content += fmt.Sprintf("  - {name: w%d, gpu: true}\n", i)
	}
	_, err := loadCase(t, content)
	simtest.AssertEqual(t, "faults", fmt.Sprint(err), "rental.yml: watches: 101 is out of range: must be from 0 to 100")
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
		if c, isEnabled := config.Collectors[r.Name]; isEnabled {
			lines = append(lines, fmt.Sprintf("%s: {%s %s %s}", r.Name, c.Interval, c.MaxAge, c.SoldOutInterval))
		}
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
