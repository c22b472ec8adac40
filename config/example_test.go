package config

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
)

const exampleFile = "../example.yml"

// TestExampleShowsDefaults asserts that example.yml shows every setting with its
// default. The flag -update rewrites the list of collectors.
func TestExampleShowsDefaults(t *testing.T) {
	resources := collector.Resources()
	shown := regexp.MustCompile(`(?m)(^collectors:\n)(  .*\n|\n)*`)
	content := readExample(t)
	simtest.Golden(t, exampleFile, shown.ReplaceAllLiteralString(content, exampleCollectors(resources)+"\n"))

	defaults := mustLoad(t, parseFlagsOf(t, resources, nil, "--api.base-url="+baseURL))
	simtest.AssertEqual(t, "configuration", mustLoad(t, parseFlagsOf(t, resources, nil, "--config.file="+exampleFile)), defaults)

	// A setting that the file lacks has its default, too.
	keys := []string{"", "api", "api.base_url", "api.timeout", "api.http", "api.rate_limit", "api.rate_limit.public", "api.rate_limit.account", "collectors"}
	for _, r := range resources {
		path := "collectors." + r.Name
		keys = append(keys, path, path+".enabled", path+".interval", path+".max_age")
	}
	slices.Sort(keys)
	l := newLoader(parseFlagsOf(t, resources, nil, "--config.file="+exampleFile))
	l.loadFile()
	simtest.AssertEqual(t, "keys", slices.Sorted(maps.Keys(l.lines)), keys)
}

// exampleCollectors returns the section collectors of example.yml.
func exampleCollectors(resources []collector.Resource) string {
	var public, account strings.Builder
	for _, r := range resources {
		b := &public
		if r.Account {
			b = &account
		}
		fmt.Fprintf(b, "  %s: {enabled: true, interval: %s, max_age: %s}", r.Name, model.Duration(r.Interval), model.Duration(r.MaxAge))
		if r.MinInterval > 0 {
			fmt.Fprintf(b, " # interval: at least %s", model.Duration(r.MinInterval))
		}
		b.WriteByte('\n')
	}
	return "collectors:\n" +
		"  # Public collectors. The API caches their responses.\n" + public.String() +
		"\n  # Collectors that run once for each account.\n" + account.String()
}

// TestExampleComments asserts that the settings that example.yml shows as
// comments are valid.
func TestExampleComments(t *testing.T) {
	uncommented := strings.NewReplacer(
		"  http: {}\n", "",
		"  #   http:\n", "  http:\n",
		"  #     proxy_url:", "    proxy_url:",
		"  #     tls_config:", "    tls_config:",
		"  #       server_name:", "      server_name:",
		"# accounts:", "accounts:",
		"# watches:", "watches:",
		"#   - name: cheap-in-europe\n", "  - name: cheap-in-europe\n",
		"#     regions:", "    regions:",
		"#     min_memory_gib:", "    min_memory_gib:",
		"#     max_usd_per_month:", "    max_usd_per_month:",
		"#   - name:", "  - name:",
		"#     token_file: /run/secrets/rental-token\n", "    token_file: tokens/main\n",
		"#     token_file: /run/secrets/rental-token-lab\n", "    token_file: tokens/second\n",
	).Replace(readExample(t))
	enterConfigDir(t)
	simtest.WriteFile(t, "rental.yml", uncommented)
	config := mustLoad(t, parseFlagsOf(t, collector.Resources(), nil, "--config.file=rental.yml"))
	simtest.AssertEqual(t, "accounts", config.Accounts, []Account{{Name: "main", TokenFile: "tokens/main"}, {Name: "lab", TokenFile: "tokens/second"}})
	simtest.AssertEqual(t, "watches", config.Watches, []collector.Watch{
		{Name: "cheap-in-europe", Regions: []string{"Europe"}, MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(100.0)},
	})
	simtest.AssertEqual(t, "proxy", config.API.HTTP.ProxyURL.String(), "http://proxy.example:3128")
	simtest.AssertEqual(t, "server name", config.API.HTTP.TLSConfig.ServerName, "rental.example")
}

func readExample(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
