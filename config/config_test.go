package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"

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
		{Name: "configurations", Help: "saved configurations", Account: true, Interval: 5 * minute, MaxAge: 30 * minute, Requests: 1},
		{Name: "ssh_keys", Help: "SSH keys", Account: true, Interval: 5 * minute, MaxAge: 30 * minute, Requests: 1},
		{Name: "servers", Help: "servers", Account: true, Interval: minute, MaxAge: 10 * minute, Requests: 1},
	}
}

func defaultCollectors(resources []collector.Resource) map[string]Collector {
	collectors := map[string]Collector{}
	for _, r := range resources {
		collectors[r.Name] = Collector{Enabled: true, Interval: r.Interval, MaxAge: r.MaxAge}
	}
	return collectors
}

// defaultConfig is the configuration with only a base URL.
func defaultConfig(t testing.TB) *Config {
	t.Helper()
	return &Config{
		Shard: Shard{Total: 1},
		API: API{
			BaseURL:   parseURL(t, baseURL),
			Timeout:   10 * time.Second,
			HTTP:      promconfig.DefaultHTTPClientConfig,
			RateLimit: RateLimit{Public: 30, Account: 60},
		},
		Collectors: defaultCollectors(testResources()),
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
	config, err := flags.Load(os.Getenv)
	if err == nil {
		if config == nil {
			t.Fatal("got neither a configuration nor an error")
		}
		return config, nil
	}
	var errs FieldErrors
	if !errors.As(err, &errs) || len(errs) == 0 || config != nil {
		t.Fatalf("got %v and %T, want no configuration and FieldErrors", config, err)
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(errs) {
		t.Errorf("got %d lines for %d errors:\n%v", got, len(errs), err)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("got a secret in the error:\n%v", err)
	}
	return nil, err
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

func TestLoadFull(t *testing.T) {
	enterConfigDir(t)
	got := mustLoad(t, parseFlags(t, nil, "--config.file=full.yml"))
	week := 7 * 24 * time.Hour
	want := &Config{
		Shard: Shard{Total: 1},
		API: API{
			BaseURL: parseURL(t, "https://rental.example:8443/prefix/api/v1"),
			Timeout: 5 * time.Minute,
			HTTP: promconfig.HTTPClientConfig{
				ProxyConfig: promconfig.ProxyConfig{
					ProxyURL:           promconfig.URL{URL: parseURL(t, "http://proxy.example:3128")},
					NoProxy:            "internal.example",
					ProxyConnectHeader: promconfig.ProxyHeader{"X-Team": {"infra"}},
				},
				TLSConfig: promconfig.TLSConfig{
					CAFile:     "ca.pem",
					ServerName: "rental.example",
					MinVersion: promconfig.TLSVersions["TLS13"],
				},
				FollowRedirects: true,
				HTTPHeaders: &promconfig.Headers{Headers: map[string]promconfig.Header{
					"X-Trace": {Values: []string{"exporter"}, Files: []string{"header"}},
				}},
			},
			RateLimit: RateLimit{Public: 59, Account: 120},
		},
		Accounts: []Account{
			{Name: "main", TokenFile: "tokens/main"},
			{Name: `Zweitkonto "ä"`, TokenFile: "tokens/second"},
		},
		Collectors: map[string]Collector{
			"plans":          {true, 2 * time.Minute, 90 * time.Minute},
			"locations":      {true, 10 * time.Minute, 30 * time.Minute},
			"os":             {false, 24 * time.Hour, week},
			"status":         {true, 30 * time.Second, 30 * time.Second},
			"account":        {true, time.Minute, 10 * time.Minute},
			"topups":         {true, 90 * time.Second, 15 * time.Minute},
			"transactions":   {true, 90 * time.Second, 15 * time.Minute},
			"configurations": {true, time.Second, 30 * time.Minute},
			"ssh_keys":       {true, 30 * 24 * time.Hour, 365 * 24 * time.Hour},
			"servers":        {true, time.Minute, time.Minute},
		},
		Watches: []collector.Watch{
			{
				Name: "all criteria", Plans: []string{"epyc-7443p", "7"}, Families: []string{"performance"},
				Locations: []string{"fra", "ams"}, Regions: []string{"Europe", "North America"}, Countries: []string{"DE", "no"},
				GPU: ptr(true), MinCores: ptr(8.0), MinMemoryGiB: ptr(64.0), MaxUSDPerMonth: ptr(99.9), MaxEURPerMonth: ptr(0.0),
			},
			{Name: "main", GPU: ptr(false)},
			{Name: "bounds", MinCores: ptr(1e15), MaxUSDPerMonth: ptr(1000.0)},
		},
	}
	simtest.AssertEqual(t, "configuration", got, want)
}

func ptr[T any](v T) *T { return &v }

func TestLoadDefaults(t *testing.T) {
	enterConfigDir(t)
	for name, content := range map[string]string{
		"empty":         "",
		"comment":       "# nothing\n",
		"null":          "~\n",
		"null sections": "api:\naccounts:\ncollectors:\nwatches:\n",
		"null values":   "api: {timeout: , http: , rate_limit: {public: }}\ncollectors: {plans: , os: {enabled: , interval: , max_age: }}\n",
		"empty values":  "api: {http: {}, rate_limit: {}}\naccounts: []\nwatches: []\ncollectors: {plans: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			simtest.WriteFile(t, "rental.yml", content)
			simtest.AssertEqual(t, "configuration", mustLoad(t, parseFlags(t, nil, "--api.base-url="+baseURL, "--config.file=rental.yml")), defaultConfig(t))
		})
	}
	t.Run("no file", func(t *testing.T) {
		simtest.AssertEqual(t, "configuration", mustLoad(t, parseFlags(t, nil, "--api.base-url="+baseURL)), defaultConfig(t))
	})
}

func TestLoadBaseURL(t *testing.T) {
	for _, value := range []string{
		baseURL,
		baseURL + "/",
		"http://rental.example/api/v1",
		"HTTPS://rental.example/some/prefix/api/v1",
		"http://[2001:db8::1]:8080/api/v1",
	} {
		t.Run(value, func(t *testing.T) {
			config := mustLoad(t, parseFlags(t, nil, "--api.base-url="+value))
			want := strings.Replace(strings.TrimSuffix(value, "/"), "HTTPS", "https", 1)
			if got := config.API.BaseURL.String(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

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

func TestFlagsOverrideFile(t *testing.T) {
	enterConfigDir(t)
	simtest.WriteFile(t, "rental.yml", "api: {base_url: http://file.example/api/v1}\ncollectors:\n  plans: {enabled: false, interval: 2m}\n  os: {enabled: false}\n  status: {interval: 1m}\n")
	flags := parseFlags(t, map[string]string{tokenEnvar: " " + secret + "\n", "SERVER_RENTAL_CONFIG_FILE": "rental.yml"},
		"--api.base-url="+baseURL, "--collector.plans", "--no-collector.status", "--config.check")
	config := mustLoad(t, flags)
	want := defaultCollectors(testResources())
	want["plans"] = Collector{true, 2 * time.Minute, 6 * time.Minute}
	want["os"] = Collector{false, time.Hour, 6 * time.Hour}
	want["status"] = Collector{false, time.Minute, 5 * time.Minute}
	simtest.AssertEqual(t, "collectors", config.Collectors, want)
	simtest.AssertEqual(t, "base URL", config.API.BaseURL.String(), baseURL)
	simtest.AssertEqual(t, "accounts", config.Accounts, []Account{{Name: "default", Token: secret}})
	if !flags.Check || flags.Demo {
		t.Errorf("got check %t and demo %t, want true and false", flags.Check, flags.Demo)
	}
}

// TestReload loads repeatedly: each time, file and environment are read.
func TestReload(t *testing.T) {
	enterConfigDir(t)
	flags := parseFlags(t, nil, "--api.base-url="+baseURL, "--config.file=rental.yml")
	for _, step := range []struct {
		content string
		token   string
		timeout time.Duration
		want    []string
	}{
		{"api: {timeout: 20s}\n", "", 20 * time.Second, nil},
		{"api: {timeout: 20}\n", "", 0, []string{"rental.yml:1: api.timeout: invalid duration: must be like 30s, 5m, 1h30m or 1d"}},
		{"", secret, 10 * time.Second, nil},
	} {
		simtest.WriteFile(t, "rental.yml", step.content)
		t.Setenv(tokenEnvar, step.token)
		config, err := load(t, flags)
		assertErrors(t, err, step.want...)
		if err != nil {
			continue
		}
		if config.API.Timeout != step.timeout || (len(config.Accounts) > 0) != (step.token != "") {
			t.Errorf("%q: got timeout %v and accounts %v", step.content, config.API.Timeout, config.Accounts)
		}
	}
}

func TestLoadDemo(t *testing.T) {
	want := defaultConfig(t)
	want.API.BaseURL = nil
	simtest.AssertEqual(t, "configuration", mustLoad(t, parseFlags(t, nil, "--demo")), want)
	mustLoad(t, parseFlags(t, nil, append(disable("plans", "locations", "os", "status"), "--demo")...))
}

func TestLoadBounds(t *testing.T) {
	enterConfigDir(t)
	longest, largest := strings.Repeat("ä", maxName/2), "#"+strings.Repeat("x", maxFile-1)
	bomb := "api: {http: {proxy_connect_header: {a: &a [" + strings.Repeat("x,", 999) + "x], " + aliasHeaders(200) + "}}}\n"
	for _, test := range []struct {
		content string
		want    []string
	}{
		{"accounts: [{name: " + longest + ", token_file: tokens/main}]", nil},
		{largest, nil},
		{largest + "x", []string{"rental.yml: --config.file: too large: must be at most 1048576 bytes"}},
		{bomb, []string{"rental.yml: too many values: must be at most 100000, with those of an alias counted at each use"}},
		// A text file such as errors.txt cannot contain these.
		{"collectors: {}\napi: \x01" + secret + "\n", []string{"rental.yml:2: invalid YAML: control characters are not allowed"}},
		{"api: \xff\xfe " + secret + "\n", []string{"rental.yml:1: invalid YAML: invalid leading UTF-8 octet"}},
	} {
		_, err := loadFile(t, test.content, "--api.base-url="+baseURL)
		assertErrors(t, err, test.want...)
	}

	// The number of errors must be bounded, too.
	_, err := loadFile(t, "accounts: [&a {"+strings.Repeat("x: 1, ", 999)+"x: 1}"+strings.Repeat(", *a", 999)+"]\n", "--api.base-url="+baseURL)
	var many FieldErrors
	if !errors.As(err, &many) {
		t.Fatalf("got %v, want FieldErrors", err)
	}
	if got := len(many); got > maxValues+1000*2 {
		t.Errorf("got %d errors of a small file", got)
	}

	if err := exec.Command("mkfifo", "pipe").Run(); err != nil {
		t.Skip(err)
	}
	_, err = load(t, parseFlags(t, nil, "--config.file=pipe", "--api.token-file=pipe"))
	assertErrors(t, err, "--api.token-file: not a regular file", "pipe: --config.file: not a regular file")
}

// aliasHeaders returns n headers, each an alias of the same values.
func aliasHeaders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "h%d: *a, ", i)
	}
	return b.String()
}

func TestReadToken(t *testing.T) {
	enterConfigDir(t)
	for _, test := range []struct{ content, want, err string }{
		{content: "\r\n abc!~ \r\n", want: "abc!~"},
		{content: strings.Repeat("x", maxToken), want: strings.Repeat("x", maxToken)},
		{content: strings.Repeat("x", maxToken) + "\n", err: "too large: must be at most 4096 bytes"},
		{content: "", err: "empty: must be a token"},
		{content: secret + "\x00", err: "invalid token: must be printable ASCII without spaces"},
		{content: secret + "\x7f", err: "invalid token: must be printable ASCII without spaces"},
	} {
		simtest.WriteFile(t, "rental.yml", test.content)
		got, err := NewTokenFile("rental.yml").Read()
		var message string
		if err != nil {
			message = err.Error()
		}
		if got != test.want || message != test.err {
			t.Errorf("%.20q: got %.20q, %q, want %.20q, %q", test.content, got, message, test.want, test.err)
		}
	}
	_, err := NewTokenFile(secret).Read()
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

func TestRequestRates(t *testing.T) {
	enterConfigDir(t)
	config := mustLoad(t, parseFlags(t, nil, "--config.file=full.yml"))
	config.Collectors["configurations"] = Collector{Enabled: true, Interval: 2 * time.Second}
	config.Collectors["ssh_keys"] = Collector{}
	got := config.RequestRates(testResources())
	// Public: plans every 2m, locations every 10m, status every 30s.
	// Account: account and servers every 1m, topups and transactions every
	// 90s, configurations every 2s.
	account := 1 + 1 + 2.0/3 + 2.0/3 + 30
	want := []ScopeRate{
		{Account: "", PerMinute: 0.5 + 0.1 + 2, MaxPerMinute: 2.6, Limit: 59},
		{Account: "main", PerMinute: account, MaxPerMinute: account + 2*2.0/3 + 2.0/3, Limit: 120},
		{Account: `Zweitkonto "ä"`, PerMinute: account, MaxPerMinute: account + 2*2.0/3 + 2.0/3, Limit: 120},
	}
	rounded := func(rates []ScopeRate) string { return fmt.Sprintf("%.6v", rates) }
	if rounded(got) != rounded(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRateEqualsLimit has a rate whose floating-point sum is not exact.
func TestRateEqualsLimit(t *testing.T) {
	enterConfigDir(t)
	args := append(disable("transactions", "configurations", "ssh_keys"), "--api.base-url="+baseURL, "--api.token-file=tokens/main")
	_, err := loadFile(t, "api: {rate_limit: {account: 4}}\ncollectors: {account: {interval: 45s}, topups: {interval: 45s}, servers: {interval: 45s}}\n", args...)
	assertErrors(t, err)
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
	if err := os.Mkdir("tokens", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"main":      secret + "-main-token\n",
		"copy":      secret + "-main-token",
		"second":    "  " + secret + "-second-token  \n\n",
		"third":     secret + "-third-token\n",
		"empty":     "",
		"blank":     " \n\t\n",
		"two_words": secret + " main\n",
		"two_lines": secret + "\nmain\n",
		"umlaut":    secret + "ä\n",
		"large":     secret + strings.Repeat("x", maxToken),
	} {
		simtest.WriteFile(t, "tokens/"+name, content)
	}
}

func parseURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// disable returns the flags that disable collectors.
func disable(names ...string) []string {
	flags := make([]string, len(names))
	for i, name := range names {
		flags[i] = "--no-collector." + name
	}
	return flags
}
