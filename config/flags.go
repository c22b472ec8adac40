package config

import (
	"cmp"
	"errors"
	"os"
	"strconv"

	"github.com/alecthomas/kingpin/v2"
	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

// TokenEnvar contains the token itself. There is no such flag: every local user can read command
// lines.
const TokenEnvar = "SERVER_RENTAL_API_TOKEN"

const shardEnvar = "SERVER_RENTAL_SHARD"

// Flags holds the values of the command line and of the environment, once the application has parsed its
// arguments. As for kingpin, an empty value is none.
type Flags struct {
	baseURL, tokenFile, configFile, shard, totalShards string

	Check, Demo, disableDefaults bool

	toggles map[string]*bool // the flags --[no-]collector.NAME that are set, by name
}

// AddFlags adds the flags of the configuration to app, among them one for each collector.
func AddFlags(app *kingpin.Application) *Flags {
	f := &Flags{toggles: map[string]*bool{}}
	add := func(value *string, name, envar, placeholder, help string) {
		app.Flag(name, help).Envar(envar).PlaceHolder(placeholder).StringVar(value)
	}
	add(&f.baseURL, "api.base-url", "SERVER_RENTAL_API_BASE_URL", "URL",
		"Base URL of the rental API, ending in /api/v1.")
	add(&f.tokenFile, "api.token-file", "SERVER_RENTAL_API_TOKEN_FILE", "FILE",
		"File that contains the API token of one account, which is named default. $"+TokenEnvar+" can contain the token itself instead.")
	add(&f.configFile, "config.file", "SERVER_RENTAL_CONFIG_FILE", "FILE",
		"Configuration file (YAML).")
	add(&f.shard, "shard", shardEnvar, "I",
		"Index of this shard, from 0: it exports the accounts that hash to it, and shard 0 the public data and the watches.")
	add(&f.totalShards, "total-shards", "SERVER_RENTAL_TOTAL_SHARDS", "N",
		"Number of shards that share the accounts of one configuration (default: 1).")
	app.Flag("config.check", "Check flags and configuration file, print all errors and exit.").BoolVar(&f.Check)
	app.Flag("demo", "Export a simulated rental API that runs in the same process: no account, no network.").BoolVar(&f.Demo)
	app.Flag("collector.disable-defaults", "Disable all collectors that are not enabled by a flag or in the configuration file.").BoolVar(&f.disableDefaults)
	for _, r := range collector.Resources() {
		help, enabled := "Export "+r.Help, new(bool)
		if r.Account {
			help += ", for each account"
		}
		app.Flag("collector."+r.Name, help+" (default: enabled).").Action(func(*kingpin.ParseContext) error {
			f.toggles[r.Name] = enabled
			return nil
		}).BoolVar(enabled)
	}
	return f
}

// Load reads the environment and all files, and validates them together with the flags. Call it
// again to reload. The error has a line for each fault; faults of settings only if the file is
// valid YAML.
func (f *Flags) Load() (*Config, error) {
	if f.baseURL == "" && f.configFile == "" && !f.Demo {
		return nil, errors.New("nothing to export: set --api.base-url or --config.file, or start with --demo for a simulated provider")
	}
	l := &loader{flags: f, used: map[[2]string]string{}}
	l.Collectors = map[string]collector.Timing{}
	l.API.TimeoutText, l.API.HTTP.HTTPClientConfig = "10s", promconfig.DefaultHTTPClientConfig
	l.API.RateLimit.Public, l.API.RateLimit.Account = 30, 60
	if l.decode() {
		l.checkShard()
		l.checkAccounts()
		l.checkAPI()
		l.checkCollectors()
		l.checkWatches()
	}
	if f.Demo && (l.API.BaseURL != nil || len(l.Accounts)+len(l.AccountFiles) > 0) {
		l.add("--demo", "conflicts with a base URL and with accounts: the demo has its own")
	}
	if len(l.errs) > 0 {
		return nil, errors.Join(l.errs...)
	}
	return &l.Config, nil
}

// checkShard reads the flags of the shard; 0 of 1 is the default. If there are several shards, an
// empty variable of the index is a fault: the platform did not number this process.
func (l *loader) checkShard() {
	l.Shard.Total = l.number("--total-shards", cmp.Or(l.flags.totalShards, "1"), 1, maxShards)
	index := l.flags.shard
	if _, isThere := os.LookupEnv(shardEnvar); !isThere || l.Shard.Total == 1 {
		index = cmp.Or(index, "0")
	}
	l.Shard.Index = l.number("--shard", index, 0, l.Shard.Total-1)
}

// number returns the value of a flag, or the upper bound if the value is not within bounds.
func (l *loader) number(flag, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		l.add(flag, "must be a number from %d to %d", least, most)
		return most
	}
	return n
}
