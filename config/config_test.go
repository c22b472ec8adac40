package config

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// marker is part of every secret in the tests and their files. Every error is
// searched for it, see load.
const marker = "s3cr3t"

const base = "https://rental.example/api/v1"

// specs are the collectors with the defaults that the documentation shows.
func specs() []CollectorSpec {
	second, minute, hour := time.Second, time.Minute, time.Hour
	return []CollectorSpec{
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

// defaults are the collectors as they are where nothing is set.
func defaults() map[string]Collector {
	collectors := map[string]Collector{}
	for _, s := range specs() {
		collectors[s.Name] = Collector{Enabled: true, Interval: s.Interval, MaxAge: s.MaxAge}
	}
	return collectors
}

// parse is the flags of a command line, read in an environment of nothing but
// env.
func parse(t testing.TB, env map[string]string, args ...string) *Flags {
	t.Helper()
	for _, name := range []string{"SERVER_RENTAL_API_BASE_URL", "SERVER_RENTAL_API_TOKEN_FILE", "SERVER_RENTAL_CONFIG_FILE", tokenEnvar} {
		t.Setenv(name, env[name])
	}
	app := kingpin.New("test", "").Terminate(nil)
	flags := AddFlags(app, specs())
	if _, err := app.Parse(args); err != nil {
		t.Fatalf("parse %q: %v", args, err)
	}
	return flags
}

// load loads, and holds every error to what all of them promise.
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
		t.Errorf("got %d lines for %d errs:\n%v", got, len(errs), err)
	}
	if strings.Contains(err.Error(), marker) {
		t.Errorf("secret in the error:\n%v", err)
	}
	return nil, err
}

// wantFaults compares an error with fault lines; none means no error.
func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	var got string
	if err != nil {
		got = err.Error()
	}
	if wanted := strings.Join(want, "\n"); got != wanted {
		t.Errorf("got errs:\n%s\nwant:\n%s", got, wanted)
	}
}

func TestLoadFull(t *testing.T) {
	config, err := load(t, parse(t, nil, "--config.file=testdata/full.yml"))
	wantFaults(t, err)
	if err != nil {
		return
	}
	u, _ := url.Parse("https://rental.example:8443/prefix/api/v1")
	proxy, _ := url.Parse("http://proxy.example:3128")
	week := 7 * 24 * time.Hour
	want := &Config{
		API: API{
			BaseURL: u,
			Timeout: 5 * time.Minute,
			HTTP: promconfig.HTTPClientConfig{
				ProxyConfig: promconfig.ProxyConfig{
					ProxyURL:           promconfig.URL{URL: proxy},
					NoProxy:            "internal.example",
					ProxyConnectHeader: promconfig.ProxyHeader{"X-Team": {"infra"}},
				},
				TLSConfig: promconfig.TLSConfig{
					CAFile:     "testdata/ca.pem",
					ServerName: "rental.example",
					MinVersion: promconfig.TLSVersions["TLS13"],
				},
				FollowRedirects: true,
				HTTPHeaders: &promconfig.Headers{Headers: map[string]promconfig.Header{
					"X-Trace": {Values: []string{"exporter"}, Files: []string{"testdata/header"}},
				}},
			},
			RateLimit: RateLimit{Public: 59, Account: 120},
		},
		Accounts: []Account{
			{Name: "main", TokenFile: "testdata/tokens/main"},
			{Name: `Zweitkonto "ä"`, TokenFile: "testdata/tokens/second"},
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
	}
	if !reflect.DeepEqual(config, want) {
		t.Errorf("got\n%+v\nwant\n%+v", config, want)
	}
}

func TestLoadDefaults(t *testing.T) {
	u, _ := url.Parse(base)
	want := &Config{
		API: API{
			BaseURL:   u,
			Timeout:   10 * time.Second,
			HTTP:      promconfig.DefaultHTTPClientConfig,
			RateLimit: RateLimit{Public: 30, Account: 60},
		},
		Collectors: defaults(),
	}
	for name, content := range map[string]string{
		"empty":         "",
		"comment":       "# nothing\n",
		"null":          "~\n",
		"null sections": "api:\naccounts:\ncollectors:\n",
		"null values":   "api: {timeout: , http: , rate_limit: {public: }}\ncollectors: {plans: , os: {enabled: , interval: , max_age: }}\n",
		"empty values":  "api: {http: {}, rate_limit: {}}\naccounts: []\ncollectors: {plans: {}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			config, err := load(t, parse(t, nil, "--api.base-url="+base, "--config.file="+file(t, content)))
			wantFaults(t, err)
			if !reflect.DeepEqual(config, want) {
				t.Errorf("got\n%+v\nwant\n%+v", config, want)
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		config, err := load(t, parse(t, nil, "--api.base-url="+base))
		wantFaults(t, err)
		if !reflect.DeepEqual(config, want) {
			t.Errorf("got\n%+v\nwant\n%+v", config, want)
		}
	})
}

// TestLoadBad has one file for each rule; the golden file beside it has every
// line that the operator sees.
func TestLoadBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v and error %v", files, err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yml"), func(t *testing.T) {
			_, err := load(t, parse(t, nil, "--config.file="+name))
			if err == nil {
				t.Fatal("got no fault")
			}
			golden := strings.TrimSuffix(name, ".yml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, readErr := os.ReadFile(golden)
			if readErr != nil {
				t.Fatal(readErr)
			}
			wantFaults(t, err, strings.TrimSuffix(string(want), "\n"))
		})
	}
}

func TestLoadBaseURL(t *testing.T) {
	for _, given := range []string{
		base,
		base + "/",
		"http://rental.example/api/v1",
		"HTTPS://rental.example/some/prefix/api/v1",
		"http://[2001:db8::1]:8080/api/v1",
	} {
		t.Run(given, func(t *testing.T) {
			config, err := load(t, parse(t, nil, "--api.base-url="+given))
			wantFaults(t, err)
			if err != nil {
				return
			}
			want := strings.Replace(strings.TrimSuffix(given, "/"), "HTTPS", "https", 1)
			if got := config.API.BaseURL.String(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestLoadPlainHTTP(t *testing.T) {
	const fault = "--api.base-url: plain http: must be https, or a loopback address, where there are accounts: a token would travel in the clear"
	for host, want := range map[string][]string{
		"127.0.0.1": nil, "127.9.9.9:8080": nil, "[::1]:80": nil, "localhost": nil, "LocalHost:1": nil,
		"rental.example": {fault}, "10.0.0.1": {fault}, "128.0.0.1": {fault}, "0.0.0.0": {fault}, "127.1": {fault},
		"localhost.example": {fault}, "[::2]": {fault}, "127.0.0.1.example": {fault},
	} {
		t.Run(host, func(t *testing.T) {
			_, err := load(t, parse(t, nil, "--api.base-url=http://"+host+"/api/v1", "--api.token-file=testdata/tokens/main"))
			wantFaults(t, err, want...)
		})
	}
}

func TestLoadFlags(t *testing.T) {
	withAccounts := file(t, "api: {base_url: https://file.example/api/v1}\naccounts:\n  - {name: default, token_file: "+absolute(t, "testdata/tokens/second")+"}\n")
	const nothing = "nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider"
	for _, test := range []struct {
		name string
		env  map[string]string
		args []string
		want []string
	}{
		{name: "nothing", want: []string{nothing}},
		{name: "only a token", env: map[string]string{tokenEnvar: marker}, want: []string{nothing}},
		{name: "only a switch", args: []string{"--no-collector.plans"}, want: []string{nothing}},
		{
			name: "empty base URL", args: []string{"--api.base-url="},
			want: []string{"--api.base-url: not an absolute URL: must be like https://rental.example/api/v1"},
		},
		{
			name: "base URL of the environment", env: map[string]string{"SERVER_RENTAL_API_BASE_URL": "https://x:" + marker + "@rental.example/api/v1"},
			want: []string{"SERVER_RENTAL_API_BASE_URL: has user information: must be without, tokens belong to accounts"},
		},
		{
			name: "no file", args: []string{"--config.file=testdata/none.yml"},
			want: []string{"testdata/none.yml: --config.file: no such file or directory"},
		},
		{
			name: "no file name", args: []string{"--config.file="},
			want: []string{"--config.file: no such file or directory"},
		},
		{
			name: "no file of the environment", env: map[string]string{"SERVER_RENTAL_CONFIG_FILE": "testdata/none.yml"},
			want: []string{"testdata/none.yml: SERVER_RENTAL_CONFIG_FILE: no such file or directory"},
		},
		{
			name: "a directory", args: []string{"--config.file=testdata"},
			want: []string{"testdata: --config.file: not a regular file"},
		},
		{
			name: "no file, and a faulty flag", args: []string{"--config.file=testdata/none.yml", "--api.base-url=x", "--api.token-file=testdata/tokens/empty"},
			want: []string{
				"--api.token-file: empty: must be one token",
				"--api.base-url: not an absolute URL: must be like https://rental.example/api/v1",
				"testdata/none.yml: --config.file: no such file or directory",
			},
		},
		{
			name: "two tokens", env: map[string]string{tokenEnvar: marker}, args: []string{"--api.base-url=" + base, "--api.token-file=testdata/tokens/main"},
			want: []string{"SERVER_RENTAL_API_TOKEN: set together with --api.token-file: must be one of the two"},
		},
		{
			name: "two tokens of the environment", args: []string{"--api.base-url=" + base},
			env:  map[string]string{tokenEnvar: marker, "SERVER_RENTAL_API_TOKEN_FILE": "testdata/tokens/main"},
			want: []string{"SERVER_RENTAL_API_TOKEN: set together with SERVER_RENTAL_API_TOKEN_FILE: must be one of the two"},
		},
		{
			name: "no token file", args: []string{"--api.base-url=" + base, "--api.token-file=" + marker},
			want: []string{"--api.token-file: no such file or directory"},
		},
		{
			name: "faulty token", env: map[string]string{tokenEnvar: marker + "\n" + marker}, args: []string{"--api.base-url=" + base},
			want: []string{"SERVER_RENTAL_API_TOKEN: not a token: must be printable ASCII without spaces"},
		},
		{
			name: "large token", env: map[string]string{tokenEnvar: marker + strings.Repeat("x", maxToken)}, args: []string{"--api.base-url=" + base},
			want: []string{"SERVER_RENTAL_API_TOKEN: larger than 4096 bytes"},
		},
		{
			name: "blank token", env: map[string]string{tokenEnvar: " "}, args: []string{"--api.base-url=" + base},
			want: []string{"SERVER_RENTAL_API_TOKEN: empty: must be one token"},
		},
		{
			name: "default twice", args: []string{"--config.file=" + withAccounts, "--api.token-file=testdata/tokens/main"},
			want: []string{withAccounts + `:3: accounts[0].name: "default" is already the name of --api.token-file: must be unique`},
		},
		{
			name: "default twice, with the same token", env: map[string]string{tokenEnvar: marker + "-second-token"}, args: []string{"--config.file=" + withAccounts},
			want: []string{
				withAccounts + `:3: accounts[0].name: "default" is already the name of SERVER_RENTAL_API_TOKEN: must be unique`,
				withAccounts + ":3: accounts[0].token_file: the same token as SERVER_RENTAL_API_TOKEN: must differ, because each token has one request budget",
			},
		},
		{
			name: "no collector", args: append(off("plans", "locations", "os", "status", "account", "topups", "transactions", "configurations", "ssh_keys", "servers"), "--api.base-url="+base),
			want: []string{"collectors: nothing to export: must be at least one enabled"},
		},
		{
			name: "no account", args: append(off("plans", "locations", "os", "status"), "--api.base-url="+base),
			want: []string{"collectors: nothing to export: must be an account, because every enabled collector asks for one"},
		},
		{
			name: "no account, its token being faulty", args: append(off("plans", "locations", "os", "status"), "--api.base-url="+base, "--api.token-file=x"),
			want: []string{"--api.token-file: no such file or directory"},
		},
		{
			name: "all with a demo", env: map[string]string{tokenEnvar: marker},
			args: []string{"--demo", "--api.base-url=" + base, "--api.token-file=testdata/tokens/main", "--config.file=" + withAccounts},
			want: []string{
				"SERVER_RENTAL_API_TOKEN: not together with --demo, which brings its own account",
				"--api.token-file: not together with --demo, which brings its own account",
				"--api.base-url: not together with --demo, which brings its own API",
				withAccounts + ":1: api.base_url: not together with --demo, which brings its own API",
				withAccounts + ":2: accounts: not together with --demo, which brings its own account",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(t, parse(t, test.env, test.args...))
			wantFaults(t, err, test.want...)
		})
	}
}

func TestFlagsWinOverFile(t *testing.T) {
	name := file(t, "api: {base_url: http://file.example/api/v1}\ncollectors:\n  plans: {enabled: false, interval: 2m}\n  os: {enabled: false}\n  status: {interval: 1m}\n")
	flags := parse(t, map[string]string{tokenEnvar: " " + marker + "\n", "SERVER_RENTAL_CONFIG_FILE": name},
		"--api.base-url="+base, "--collector.plans", "--no-collector.status", "--config.check")
	config, err := load(t, flags)
	wantFaults(t, err)
	if err != nil {
		return
	}
	want := defaults()
	want["plans"] = Collector{true, 2 * time.Minute, 6 * time.Minute}
	want["os"] = Collector{false, time.Hour, 6 * time.Hour}
	want["status"] = Collector{false, time.Minute, 5 * time.Minute}
	if !maps.Equal(config.Collectors, want) {
		t.Errorf("got collectors %v, want %v", config.Collectors, want)
	}
	if got := config.API.BaseURL.String(); got != base {
		t.Errorf("got base URL %s, want %s", got, base)
	}
	if want := []Account{{Name: "default", Token: marker}}; !reflect.DeepEqual(config.Accounts, want) {
		t.Errorf("got accounts %v, want %v", config.Accounts, want)
	}
	if !flags.Check() || flags.Demo() || flags.ConfigFile() != name {
		t.Errorf("got check %t, demo %t, file %s", flags.Check(), flags.Demo(), flags.ConfigFile())
	}
}

// TestLoadAgain is a reload: file and environment are read anew.
func TestLoadAgain(t *testing.T) {
	name := file(t, "api: {timeout: 20s}\n")
	flags := parse(t, nil, "--api.base-url="+base, "--config.file="+name)
	for _, step := range []struct {
		content string
		token   string
		timeout time.Duration
		want    []string
	}{
		{"api: {timeout: 20s}\n", "", 20 * time.Second, nil},
		{"api: {timeout: 20}\n", "", 0, []string{name + ":1: api.timeout: not a duration: must be like 30s, 5m, 1h30m or 1d"}},
		{"", marker, 10 * time.Second, nil},
	} {
		if err := os.WriteFile(name, []byte(step.content), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(tokenEnvar, step.token)
		config, err := load(t, flags)
		wantFaults(t, err, step.want...)
		if err != nil {
			continue
		}
		if config.API.Timeout != step.timeout || (len(config.Accounts) > 0) != (step.token != "") {
			t.Errorf("%q: got timeout %v and accounts %v", step.content, config.API.Timeout, config.Accounts)
		}
	}
}

func TestLoadDemo(t *testing.T) {
	config, err := load(t, parse(t, nil, "--demo"))
	wantFaults(t, err)
	if err == nil && (config.API.BaseURL != nil || config.Accounts != nil || !maps.Equal(config.Collectors, defaults())) {
		t.Errorf("got %+v, want the defaults without base URL and accounts", config)
	}
	name := file(t, "api: {timeout: 1s, rate_limit: {public: 4, account: 3}}\naccounts: []\n")
	_, err = load(t, parse(t, nil, "--demo", "--config.file="+name))
	wantFaults(t, err,
		name+":1: api.rate_limit.public: 4 is too low: must be at least the 4.1 requests per minute that the collectors' intervals need",
		name+":1: api.rate_limit.account: 3 is too low: must be at least the 3.6 requests per minute that the collectors' intervals need")
	_, err = load(t, parse(t, nil, append(off("plans", "locations", "os", "status"), "--demo")...))
	wantFaults(t, err)
}

func TestLoadBounds(t *testing.T) {
	name := strings.Repeat("ä", maxName/2)
	config, err := load(t, parse(t, nil, "--api.base-url="+base,
		"--config.file="+file(t, "accounts: [{name: "+name+", token_file: "+absolute(t, "testdata/tokens/main")+"}]")))
	wantFaults(t, err)
	if err == nil && config.Accounts[0].Name != name {
		t.Errorf("got account %v, want %s", config.Accounts[0], name)
	}

	fits := file(t, "#"+strings.Repeat("x", maxFile-1))
	_, err = load(t, parse(t, nil, "--api.base-url="+base, "--config.file="+fits))
	wantFaults(t, err)

	large := file(t, "#"+strings.Repeat("x", maxFile))
	_, err = load(t, parse(t, nil, "--api.base-url="+base, "--config.file="+large))
	wantFaults(t, err, large+": --config.file: larger than 1048576 bytes")

	bomb := file(t, "api: {http: {proxy_connect_header: {a: &a ["+strings.Repeat("x,", 999)+"x], "+headers(200)+"}}}\n")
	_, err = load(t, parse(t, nil, "--api.base-url="+base, "--config.file="+bomb))
	wantFaults(t, err, bomb+": more than 100000 values: must be fewer, aliases counted wherever they stand")

	// The same with errs only, which must not grow without bound either.
	bomb = file(t, "accounts: [&a {"+strings.Repeat("x: 1, ", 999)+"x: 1}"+strings.Repeat(", *a", 999)+"]\n")
	_, err = load(t, parse(t, nil, "--api.base-url="+base, "--config.file="+bomb))
	var many FieldErrors
	if !errors.As(err, &many) {
		t.Fatalf("got %v, want FieldErrors", err)
	}
	if got := len(many); got > maxValues+1000*2 {
		t.Errorf("got %d errs of a small file", got)
	}

	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	_, err = load(t, parse(t, nil, "--config.file="+pipe, "--api.token-file="+pipe))
	wantFaults(t, err, "--api.token-file: not a regular file", pipe+": --config.file: not a regular file")
}

// headers is n headers, each an alias of the same values.
func headers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "h%d: *a, ", i)
	}
	return b.String()
}

func TestReadToken(t *testing.T) {
	for _, test := range []struct{ content, want, fault string }{
		{content: "abc", want: "abc"},
		{content: "\r\n abc!~ \r\n", want: "abc!~"},
		{content: strings.Repeat("x", maxToken), want: strings.Repeat("x", maxToken)},
		{content: strings.Repeat("x", maxToken) + "\n", fault: "token file: larger than 4096 bytes"},
		{content: "", fault: "token file: empty: must be one token"},
		{content: "\n\n", fault: "token file: empty: must be one token"},
		{content: marker + " x", fault: "token file: not a token: must be printable ASCII without spaces"},
		{content: marker + "\x00", fault: "token file: not a token: must be printable ASCII without spaces"},
		{content: marker + "\x7f", fault: "token file: not a token: must be printable ASCII without spaces"},
		{content: marker + "\xff", fault: "token file: not a token: must be printable ASCII without spaces"},
		{content: "\ufeff" + marker, fault: "token file: not a token: must be printable ASCII without spaces"},
	} {
		got, err := ReadToken(file(t, test.content))
		var fault string
		if err != nil {
			fault = err.Error()
		}
		if got != test.want || fault != test.fault {
			t.Errorf("%.20q: got %.20q, %q, want %.20q, %q", test.content, got, fault, test.want, test.fault)
		}
	}
	_, err := ReadToken(marker)
	if !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), marker) {
		t.Errorf("got %v, want that there is no such file, without its path", err)
	}
}

func TestAccountDoesNotPrintItsToken(t *testing.T) {
	config := Config{Accounts: []Account{{Name: "default", Token: marker}}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, config); strings.Contains(got, marker) || strings.Contains(got, fmt.Sprintf("%x", marker)) {
			t.Errorf("%s: got %s", verb, got)
		}
	}
}

func TestRequestRates(t *testing.T) {
	config, err := load(t, parse(t, nil, "--config.file=testdata/full.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config.Collectors["configurations"] = Collector{Enabled: true, Interval: 2 * time.Second}
	config.Collectors["ssh_keys"] = Collector{}
	got := config.RequestRates(specs())
	// Public: plans each 2m, locations each 10m, status each 30s.
	// Account: account and servers each 1m, topups and transactions each 90s.
	account := 1 + 1 + 2.0/3 + 2.0/3 + 30
	want := []ScopeRate{
		{Account: "", PerMinute: 0.5 + 0.1 + 2, MaxPerMinute: 2.6, Limit: 59},
		{Account: "main", PerMinute: account, MaxPerMinute: account + 2*2.0/3 + 2.0/3, Limit: 120},
		{Account: `Zweitkonto "ä"`, PerMinute: account, MaxPerMinute: account + 2*2.0/3 + 2.0/3, Limit: 120},
	}
	rounded := func(costs []ScopeRate) string { return fmt.Sprintf("%.6v", costs) }
	if rounded(got) != rounded(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNeedEqualsLimit has a need whose sum in floating point is not exact.
func TestNeedEqualsLimit(t *testing.T) {
	name := file(t, "api: {rate_limit: {account: 4}}\ncollectors: {account: {interval: 45s}, topups: {interval: 45s}, servers: {interval: 45s}}\n")
	args := append(off("transactions", "configurations", "ssh_keys"), "--api.base-url="+base, "--api.token-file=testdata/tokens/main", "--config.file="+name)
	_, err := load(t, parse(t, nil, args...))
	wantFaults(t, err)
}

// FuzzLoad loads any file: no panic, and every error is FieldErrors.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/bad/*.yml")
	for _, name := range append(files, "testdata/full.yml") {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	name := filepath.Join(f.TempDir(), "rental.yml")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := parse(t, nil, "--config.file="+name).Load(os.Getenv)
		var errs FieldErrors
		if (err == nil) == (config == nil) || err != nil && (!errors.As(err, &errs) || len(errs) == 0) {
			t.Errorf("got %v and %T", config, err)
		}
	})
}

// file is a new file with a content.
func file(t testing.TB, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rental.yml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func absolute(t testing.TB, name string) string {
	t.Helper()
	name, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// off is the flags that switch collectors off.
func off(names ...string) []string {
	flags := make([]string, len(names))
	for i, name := range names {
		flags[i] = "--no-collector." + name
	}
	return flags
}
