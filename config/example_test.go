package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

const exampleFile = "../example.yml"

// TestExampleShowsDefaults asserts that example.yml shows every collector, and every setting with its
// default.
func TestExampleShowsDefaults(t *testing.T) {
	defaults := mustLoad(t, parseFlags(t, nil, "--api.base-url="+baseURL))
	defaults.API.Address = baseURL
	simtest.AssertEqual(t, "configuration", mustLoad(t, parseFlags(t, nil, "--config.file="+exampleFile)), defaults)
	for _, r := range collector.Resources() {
		if !strings.Contains(readExample(t), "\n  "+r.Name+": {enabled: true, interval: ") {
			t.Errorf("example.yml lacks the collector %s", r.Name)
		}
	}
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
			key := cmp.Or(field.Tag.Get("yaml"), strings.ToLower(field.Name))
			switch {
			case key == "-" || !field.IsExported():
				continue
			case field.Anonymous:
				check(prefix, field.Type)
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
	check("", reflect.TypeFor[file]())
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
