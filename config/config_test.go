package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// secret is part of every secret in the tests and their files. No error may
// contain it, see load.
const secret = "s3cr3t"

const baseURL = "https://rental.example/api/v1"

// parseFlags parses a command line with no other environment than env.
func parseFlags(t testing.TB, env map[string]string, args ...string) *Flags {
	t.Helper()
	for _, name := range []string{"SERVER_RENTAL_API_BASE_URL", "SERVER_RENTAL_API_TOKEN_FILE", "SERVER_RENTAL_CONFIG_FILE", "SERVER_RENTAL_SHARD", "SERVER_RENTAL_TOTAL_SHARDS", "HTTP_PROXY", "HTTPS_PROXY", TokenEnvar} {
		t.Setenv(name, env[name])
		if _, found := env[name]; !found {
			_ = os.Unsetenv(name)
		}
	}
	app := kingpin.New("test", "").Terminate(nil)
	flags := AddFlags(app)
	if _, err := app.Parse(args); err != nil {
		t.Fatalf("parse %q: %v", args, err)
	}
	return flags
}

// load also asserts the properties that all errors have in common.
func load(t testing.TB, flags *Flags) (*Config, error) {
	t.Helper()
	config, err := flags.Load()
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

// mustLoad loads a valid configuration.
func mustLoad(t testing.TB, flags *Flags) *Config {
	t.Helper()
	config, err := load(t, flags)
	if err != nil {
		t.Fatalf("got errors:\n%v", err)
	}
	return config
}

// TestLoadPlainHTTP has the hosts to which tokens may be sent unencrypted, and others. While there is a
// proxy, those for which Go would ask it are others.
func TestLoadPlainHTTP(t *testing.T) {
	enterConfigDir(t)
	simtest.WriteFile(t, "environment.yml", "api: {http: {proxy_from_environment: true}}")
	simtest.WriteFile(t, "url.yml", "api: {http: {proxy_url: http://proxy.example}}")
	for host, want := range map[string][]bool{ // without a proxy, with one of the environment, and with a proxy_url
		"127.0.0.1": {true, true, false}, "127.9.9.9:8080": {true, true, false}, "[::1]:80": {true, true, false}, "[::ffff:127.0.0.1]": {true, true, false},
		"localhost": {true, true, false}, "LocalHost:1": {true, false, false}, "[::1%25lo]": {true, true, false}, "localhost.": {false, false, false},
		"rental.example": {false, false, false}, "10.0.0.1": {false, false, false}, "128.0.0.1": {false, false, false}, "0.0.0.0": {false, false, false}, "127.1": {false, false, false},
		"localhost.example": {false, false, false}, "[::2]": {false, false, false}, "127.0.0.1.example": {false, false, false},
	} {
		var got []bool
		for _, file := range []string{"", "environment.yml", "url.yml"} {
			env := map[string]string{"HTTP_PROXY": "http://proxy.example"}
			_, err := load(t, parseFlags(t, env, "--api.base-url=http://"+host+"/api/v1", "--api.token-file=tokens/main", "--config.file="+file))
			got = append(got, err == nil)
		}
		simtest.AssertEqual(t, host, got, want)
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

// enterConfigDir makes a directory with the files of testdata and tokens the working
// directory, which is also called sub. Directory files is like a Secret that Kubernetes mounts.
func enterConfigDir(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{"tokens", "files/..data", "faulty"} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"files/second.token": secret + "-second-token\n",
		"files/..data/third": secret + "-third-token\n",
		"files/.main":        "",
		"files/main~":        "",
		"files/#main#":       "",
		"faulty/empty":       "",
		"faulty/b.bak":       secret,
		"faulty/b.token":     secret,
		"tokens/main":        secret + "-main-token\n",
		"tokens/second":      "  " + secret + "-second-token  \n\n",
		"tokens/large":       strings.Repeat(secret, 20_000),
		"tokens/utf16":       "\xff\xfe" + secret,
		"tokens/words":       "Bearer " + secret,
	} {
		simtest.WriteFile(t, name, content)
	}
	for link, target := range map[string]string{"files/third": "..data/third", "faulty/link": "nowhere", "loop": "loop", "sub": "."} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShardOf grows from each number of shards to the next: accounts move to the new shard
// only, and about as many as are its part.
func TestShardOf(t *testing.T) {
	const accounts = 5000
	for total := 1; total < 12; total++ {
		moved, part := 0, accounts/(total+1)
		for i := range accounts {
			name := fmt.Sprint("account-", i)
			switch before, after := ShardOf(name, total), ShardOf(name, total+1); after {
			case before:
			case total:
				moved++
			default:
				t.Errorf("%s: moves from %d to %d of %d", name, before, after, total+1)
			}
		}
		if moved < part*8/10 || moved > part*12/10 {
			t.Errorf("%d accounts move to the last of %d shards, want about %d", moved, total+1, part)
		}
	}
}
