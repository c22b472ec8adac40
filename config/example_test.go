package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

const exampleFile = "../example.yml"

// TestExampleShowsDefaults asserts that example.yml shows every setting with its
// default. The flag -update rewrites the list of collectors.
func TestExampleShowsDefaults(t *testing.T) {
	shown := regexp.MustCompile(`(?m)(^collectors:\n)(  .*\n|\n)*`)
	simtest.Golden(t, exampleFile, shown.ReplaceAllLiteralString(readExample(t), exampleCollectors()+"\n"))

	defaults := mustLoad(t, parseFlags(t, nil, "--api.base-url="+baseURL))
	defaults.API.Address = baseURL
	simtest.AssertEqual(t, "configuration", mustLoad(t, parseFlags(t, nil, "--config.file="+exampleFile)), defaults)
}

// exampleCollectors returns the section collectors of example.yml.
func exampleCollectors() string {
	var public, account strings.Builder
	for _, r := range collector.Resources() {
		b := &public
		if r.Account {
			b = &account
		}
		fmt.Fprintf(b, "  %s: {enabled: true, interval: %s, max_age: %s", r.Name, model.Duration(r.Interval), model.Duration(r.MaxAge))
		if r.SoldOutInterval > 0 {
			fmt.Fprintf(b, ", sold_out_interval: %s", model.Duration(r.SoldOutInterval))
		}
		b.WriteByte('}')
		if r.MinInterval > 0 {
			fmt.Fprintf(b, " # interval: at least %s", model.Duration(r.MinInterval))
		}
		b.WriteByte('\n')
	}
	return "collectors:\n" +
		"  # Public collectors. The API caches their responses.\n" + public.String() +
		"\n  # Collectors that run once for each account.\n" + account.String()
}

// TestDocumentedSettings asserts that docs/configuration.md has a row for each setting, and
// example.yml its name.
func TestDocumentedSettings(t *testing.T) {
	document, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	all := file{Config: Config{Accounts: make([]Account, 1), Watches: make([]collector.Watch, 1)}, Settings: map[collectorName]collectorSetting{"": {}}}
	settings, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	settings = regexp.MustCompile(`(?m)^    http:\n( {8}.*\n)+`).ReplaceAll(settings, []byte("    http: {}\n")) // the library's
	for _, setting := range regexp.MustCompile(`(?m)^[ -]*(\w+): `).FindAllSubmatch(settings, -1) {
		key := string(setting[1])
		if !regexp.MustCompile("(?m)^\\|.*`(\\w+\\.)?" + key + "`").Match(document) {
			t.Errorf("docs/configuration.md has no row for %s", key)
		}
		if !strings.Contains(readExample(t), key) {
			t.Errorf("example.yml lacks %s", key)
		}
	}
}

// TestExampleComments asserts that the accounts and watches that example.yml shows as
// comments are valid.
func TestExampleComments(t *testing.T) {
	comment := regexp.MustCompile(`(?m)^# ?(accounts:|account_files:.*|watches:|  - name: .*|    \w+: .*)$`)
	uncommented := strings.ReplaceAll(comment.ReplaceAllString(readExample(t), "$1"), "/run/secrets", "secrets")
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("secrets/rental", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rental-token", "rental-token-lab", "rental/third"} {
		simtest.WriteFile(t, "secrets/"+name, secret)
	}
	simtest.WriteFile(t, "rental.yml", uncommented)
	config := mustLoad(t, parseFlags(t, nil, "--config.file=rental.yml"))
	simtest.AssertEqual(t, "accounts", fmt.Sprint(config.Accounts), "[main lab third]")
	simtest.AssertEqual(t, "watches", len(config.Watches), 1)
}

func readExample(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
