package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
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

}

// TestDocumentedSettings asserts that docs/configuration.md has a row for each setting, and
// example.yml its name.
func TestDocumentedSettings(t *testing.T) {
	document, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	example := readExample(t)
	var check func(prefix string, typ reflect.Type)
	check = func(prefix string, typ reflect.Type) {
		for field := range typ.Fields() {
			key := field.Tag.Get("yaml")
			switch {
			case key == "-":
				continue
			case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[HTTP]():
				check(map[string]string{"rate_limit": "rate_limit."}[key], field.Type)
			case field.Type.Kind() == reflect.Map, field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
				check("", field.Type.Elem())
			case !regexp.MustCompile("(?m)^\\|.*`" + regexp.QuoteMeta(prefix+key) + "`").Match(document):
				t.Errorf("docs/configuration.md has no row for %s%s", prefix, key)
			}
			if !strings.Contains(example, key) {
				t.Errorf("example.yml lacks %s", key)
			}
		}
	}
	check("", reflect.TypeFor[File]())
}

// exampleCollectors returns the section collectors of example.yml.
func exampleCollectors(resources []collector.Resource) string {
	var public, account strings.Builder
	for _, r := range resources {
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
		"# account_files: [/run/secrets/rental/*]", "account_files: [files/*]",
		"# watches:", "watches:",
		"#   - name: cheap-in-europe\n", "  - name: cheap-in-europe\n",
		"#     regions:", "    regions:",
		"#     min_memory_gib:", "    min_memory_gib:",
		"#     max_usd_per_month:", "    max_usd_per_month:",
		"#   - name:", "  - name:",
		"#     token_file: /run/secrets/rental-token\n", "    token_file: tokens/main\n",
		"#     token_file: /run/secrets/rental-token-lab\n", "    token_file: tokens/lab\n",
	).Replace(readExample(t))
	enterConfigDir(t)
	simtest.WriteFile(t, "tokens/lab", secret+"-lab")
	simtest.WriteFile(t, "rental.yml", uncommented)
	config := mustLoad(t, parseFlagsOf(t, collector.Resources(), nil, "--config.file=rental.yml"))
	simtest.AssertEqual(t, "accounts", config.Accounts, []Account{{Name: "main", TokenFile: "tokens/main"}, {Name: "lab", TokenFile: "tokens/lab"}, {Name: "second", TokenFile: "files/second.token"}, {Name: "third", TokenFile: "files/third"}})
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
