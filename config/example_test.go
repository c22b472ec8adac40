package config

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const exampleFile = "../example.yml"

// TestExampleShowsDefaults compares example.yml with the documented defaults.
// Package collector must not be imported here, so the defaults of testSpecs are
// compared with the real ones elsewhere.
func TestExampleShowsDefaults(t *testing.T) {
	flags := parseFlags(t, nil, "--config.file="+exampleFile)
	assertEqual(t, mustLoad(t, flags), defaultConfig(t))

	// A setting that is missing in the file has its default, too.
	want := []string{"", "api", "api.base_url", "api.timeout", "api.http", "api.rate_limit", "api.rate_limit.public", "api.rate_limit.account", "collectors"}
	for _, s := range testSpecs() {
		path := "collectors." + s.Name
		want = append(want, path, path+".enabled", path+".interval", path+".max_age")
	}
	slices.Sort(want)
	l := newLoader(flags)
	l.loadFile()
	assertEqual(t, slices.Sorted(maps.Keys(l.lines)), want)
}

// TestExampleComments asserts that the settings that example.yml shows as
// comments are valid.
func TestExampleComments(t *testing.T) {
	content, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	main, lab := absolute(t, "testdata/tokens/main"), absolute(t, "testdata/tokens/second")
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
		"#     token_file: /run/secrets/rental-token\n", "    token_file: "+main+"\n",
		"#     token_file: /run/secrets/rental-token-lab\n", "    token_file: "+lab+"\n",
	).Replace(string(content))
	config := mustLoad(t, parseFlags(t, nil, "--config.file="+writeFile(t, uncommented)))
	assertEqual(t, config.Accounts, []Account{{Name: "main", TokenFile: main}, {Name: "lab", TokenFile: lab}})
	assertEqual(t, config.Watches, []Watch{
		{Name: "cheap-in-europe", Regions: []string{"Europe"}, MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(100.0)},
	})
	assertEqual(t, config.API.HTTP.ProxyURL.String(), "http://proxy.example:3128")
	assertEqual(t, config.API.HTTP.TLSConfig.ServerName, "rental.example")
}
