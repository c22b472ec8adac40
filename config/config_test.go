package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"server_rental_exporter/collector"
	"server_rental_exporter/internal/simulator/simtest"
)

// secret is part of every secret in the tests and their files. No error may
// contain it, see load.
const secret = "s3cr3t"

const baseURL = "https://rental.example/api/v1"

// testResources are like those of package collector, and stay the same if that gets more.
func testResources() []collector.Resource {
	second, minute, hour := time.Second, time.Minute, time.Hour
	return []collector.Resource{
		{Name: "plans", Help: "plan stock and prices", Interval: minute, MaxAge: 5 * minute, MinInterval: minute, Requests: 1},
		{Name: "locations", Help: "locations", Interval: minute, MaxAge: 5 * minute, MinInterval: minute, Requests: 1},
		{Name: "os", Help: "operating system images", Interval: hour, MaxAge: 6 * hour, MinInterval: minute, Requests: 1},
		{Name: "status", Help: "component states", Interval: 30 * second, MaxAge: 5 * minute, MinInterval: 30 * second, Requests: 1},
		{Name: "account", Help: "balance", Account: true, Interval: minute, MaxAge: 10 * minute, Requests: 1},
		{Name: "topups", Help: "top-ups", Account: true, Interval: minute, MaxAge: 10 * minute, Requests: 1, MaxRequests: 3},
		{Name: "transactions", Help: "transactions", Account: true, Interval: 5 * minute, MaxAge: 30 * minute, Requests: 1, MaxRequests: 2},
		{Name: "configurations", Help: "saved configurations", Account: true, Interval: 5 * minute, MaxAge: 30 * minute, SoldOutInterval: 15 * second, Requests: 1},
		{Name: "ssh_keys", Help: "SSH keys", Account: true, Interval: 5 * minute, MaxAge: 30 * minute, Requests: 1},
		{Name: "servers", Help: "servers", Account: true, Interval: minute, MaxAge: 10 * minute, Requests: 1},
	}
}

// parseFlags parses a command line with no other environment than env.
func parseFlags(t testing.TB, env map[string]string, args ...string) *Flags {
	t.Helper()
	return parseFlagsOf(t, testResources(), env, args...)
}

func parseFlagsOf(t testing.TB, resources []collector.Resource, env map[string]string, args ...string) *Flags {
	t.Helper()
	for _, name := range []string{"SERVER_RENTAL_API_BASE_URL", "SERVER_RENTAL_API_TOKEN_FILE", "SERVER_RENTAL_CONFIG_FILE", "SERVER_RENTAL_SHARD", "SERVER_RENTAL_TOTAL_SHARDS", tokenEnvar} {
		t.Setenv(name, env[name])
		if _, found := env[name]; !found {
			_ = os.Unsetenv(name)
		}
	}
	app := kingpin.New("test", "").Terminate(nil)
	flags := AddFlags(app, resources)
	if _, err := app.Parse(args); err != nil {
		t.Fatalf("parse %q: %v", args, err)
	}
	return flags
}

// load also asserts the properties that all errors have in common.
func load(t testing.TB, flags *Flags) (*Config, error) {
	t.Helper()
	config, err := flags.Load(os.LookupEnv)
	if (err == nil) != (config != nil) {
		t.Fatalf("got %v and %v, want a configuration or an error", config, err)
	}
	var all interface{ Unwrap() []error }
	if errors.As(err, &all) && strings.Count(err.Error(), "\n")+1 != len(all.Unwrap()) {
		t.Errorf("want a line for each of %d errors:\n%v", len(all.Unwrap()), err)
	}
	if strings.Contains(fmt.Sprint(err), secret) {
		t.Errorf("got a secret in the error:\n%v", err)
	}
	return config, err
}

// loadFile loads a configuration file with this content.
func loadFile(t testing.TB, content string, args ...string) (*Config, error) {
	t.Helper()
	simtest.WriteFile(t, "rental.yml", content)
	return load(t, parseFlags(t, nil, append(args, "--config.file=rental.yml")...))
}

// mustLoad loads a valid configuration.
func mustLoad(t testing.TB, flags *Flags) *Config {
	t.Helper()
	config, err := load(t, flags)
	if err != nil {
		t.Fatalf("got errors:\n%v", err)
	}
	return config
}

// assertErrors compares an error with its lines.
func assertErrors(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	simtest.AssertEqual(t, "errors", got, want)
}

func ptr[T any](v T) *T { return &v }

// TestLoadPlainHTTP has the hosts to which tokens may be sent unencrypted, and others.
func TestLoadPlainHTTP(t *testing.T) {
	enterConfigDir(t)
	for host, allowed := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9:8080": true, "[::1]:80": true, "localhost": true, "LocalHost:1": true,
		"rental.example": false, "10.0.0.1": false, "128.0.0.1": false, "0.0.0.0": false, "127.1": false,
		"localhost.example": false, "[::2]": false, "127.0.0.1.example": false,
	} {
		_, err := load(t, parseFlags(t, nil, "--api.base-url=http://"+host+"/api/v1", "--api.token-file=tokens/main"))
		if (err == nil) != allowed {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

func TestLoadBounds(t *testing.T) {
	enterConfigDir(t)
	longest, largest := strings.Repeat("ä", maxName/2), "#"+strings.Repeat("x", maxFile-1)
	for _, test := range []struct {
		content string
		want    []string
	}{
		{"accounts: [{name: " + longest + ", token_file: tokens/main}]", nil},
		{"accounts: [{name: " + longest + "x, token_file: tokens/main}]", []string{"rental.yml: accounts[0].name: invalid name: " + nameRule}},
		{largest, nil},
		{largest + "x", []string{"--config.file: rental.yml: too large: must be at most 1048576 bytes"}},
		// A text file such as load.txt cannot contain these.
		{"collectors: {}\napi: \x01" + secret + "\n", []string{"rental.yml: control characters are not allowed"}},
		{"api: \xff\xfe " + secret + "\n", []string{"rental.yml: invalid leading UTF-8 octet"}},
	} {
		_, err := loadFile(t, test.content, "--api.base-url="+baseURL)
		assertErrors(t, err, test.want...)
	}
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Skip(err)
	}
	_, err := load(t, parseFlags(t, nil, "--config.file=pipe", "--api.token-file=pipe", "--api.base-url="+baseURL))
	assertErrors(t, err, "--api.token-file: not a regular file", "--config.file: pipe: not a regular file")
}

// TestAccountFiles has as many files as a large customer, below a link as Kubernetes makes it.
func TestAccountFiles(t *testing.T) {
	enterConfigDir(t)
	var want []Account
	for _, err := range []error{os.MkdirAll("secret/..2026", 0o700), os.Symlink("..2026", "secret/..data")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		name := fmt.Sprintf("account-%03d", i)
		simtest.WriteFile(t, "secret/..2026/"+name, secret+name)
		if err := os.Symlink("..data/"+name, "secret/"+name); err != nil {
			t.Fatal(err)
		}
		want = append(want, Account{Name: name, TokenFile: "secret/" + name})
	}
	config, err := loadFile(t, "account_files: [secret/*]", "--api.base-url="+baseURL)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertEqual(t, "accounts", config.Accounts, want)
}

// TestReadToken reads a token again that was replaced.
func TestReadToken(t *testing.T) {
	enterConfigDir(t)
	read := Account{TokenFile: "link"}.TokenReader()
	for i, test := range []struct{ content, want, err string }{
		{content: "\r\n abc!~ \r\n", want: "abc!~"},
		{content: strings.Repeat("x", maxToken), want: strings.Repeat("x", maxToken)},
		{content: strings.Repeat("x", maxToken) + "\n", err: "too large: must be at most 4096 bytes"},
		{content: "", err: "empty: must be a token"},
		{content: secret + "\x00", err: "invalid token: must be printable ASCII without spaces"},
		{content: secret + "\nmain", err: "invalid token: must be printable ASCII without spaces"},
		{content: secret + "\x7f", err: "invalid token: must be printable ASCII without spaces"},
	} {
		_ = os.Remove("link") // Kubernetes replaces a link, too
		if err := os.Symlink(simtest.WriteFile(t, fmt.Sprint(i), test.content), "link"); err != nil {
			t.Fatal(err)
		}
		got, err := read()
		var message string
		if err != nil {
			message = err.Error()
		}
		if got != test.want || message != test.err {
			t.Errorf("%.20q: got %.20q, %q, want %.20q, %q", test.content, got, message, test.want, test.err)
		}
	}
	_, err := Account{TokenFile: secret}.TokenReader()()
	if !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v, want os.ErrNotExist without the path", err)
	}
}

func TestAccountDoesNotPrintItsToken(t *testing.T) {
	config := Config{Accounts: []Account{{Name: "default", Token: secret}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, config); strings.Contains(got, secret) || strings.Contains(got, fmt.Sprintf("%x", secret)) {
			t.Errorf("%s: got %s", verb, got)
		}
	}
}

func TestRequestRate(t *testing.T) {
	enterConfigDir(t)
	config := mustLoad(t, parseFlags(t, nil, "--config.file=full.yml"))
	config.Collectors["ssh_keys"] = Collector{}
	got := []Rate{config.RequestRate(testResources(), false), config.RequestRate(testResources(), true)}
	// Public: plans every 2m, locations every 10m, status every 30s.
	// Account: account and servers every 1m, topups and transactions every
	// 90s, configurations every 2s while one is sold out.
	account := 1 + 1 + 2.0/3 + 2.0/3 + 30
	want := []Rate{
		{PerMinute: 0.5 + 0.1 + 2, MaxPerMinute: 2.6, Limit: 55},
		{PerMinute: account, MaxPerMinute: account + 2*2.0/3 + 2.0/3, Limit: 116},
	}
	rounded := func(rates []Rate) string { return fmt.Sprintf("%.6v", rates) }
	simtest.AssertEqual(t, "rates", rounded(got), rounded(want))
}

// enterConfigDir makes a directory with the files of testdata and tokens the working
// directory.
func enterConfigDir(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"tokens", "files/directory", "faulty"} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	simtest.WriteFile(t, "files/second.token", secret+"-second-token\n")
	simtest.WriteFile(t, "files/third", secret+"-third-token\n")
	simtest.WriteFile(t, "files/.hidden", "")
	simtest.WriteFile(t, "faulty/empty", "")
	if err := os.Symlink("nowhere", "faulty/link"); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"main":   secret + "-main-token\n",
		"copy":   secret + "-main-token",
		"second": "  " + secret + "-second-token  \n\n",
		"third":  secret + "-third-token\n",
		"bearer": "Bearer " + secret,
		"mark":   "\ufeff" + secret,
		"utf16":  "\xff\xfe" + secret,
	} {
		simtest.WriteFile(t, "tokens/"+name, content)
	}
}
