package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"server_rental_exporter/collector"
)

// Bounds of the settings.
const (
	maxTimeout  = 5 * time.Minute
	maxInterval = 30 * 24 * time.Hour
	maxMaxAge   = 365 * 24 * time.Hour
	maxName     = 256 // bytes, see nameRule

	// The provider requires fewer than 60 public requests per minute from one
	// address, and at most 120 with one token.
	maxPublic, maxAccount = 59, 120
)

// loader holds the state of one call of Load. Unlike decoding a YAML file into structs,
// its errors have the line and the full path of a setting.
type loader struct {
	flags  *Flags
	config *Config
	file   string
	errs   FieldErrors
	// lines has the line of each setting in the file by path.
	lines map[string]int
	// budget is how many more values may be visited. Otherwise aliases of
	// aliases let a small file grow without bound.
	budget int
	// baseURLPosition is where the base URL in use was set.
	baseURLPosition Position
	// accountNames, watchNames and tokens map those in use to the field that
	// set them first.
	accountNames, watchNames, tokens map[string]string
}

func newLoader(f *Flags) *loader {
	l := &loader{
		file:         f.configFile.value,
		lines:        map[string]int{},
		budget:       maxValues,
		flags:        f,
		accountNames: map[string]string{},
		watchNames:   map[string]string{},
		tokens:       map[string]string{},
		config: &Config{
			API: API{
				Timeout:   10 * time.Second,
				HTTP:      promconfig.DefaultHTTPClientConfig,
				RateLimit: RateLimit{Public: 30, Account: 60},
			},
			Collectors: make(map[string]Collector, len(f.resources)),
		},
	}
	for _, r := range f.resources {
		l.config.Collectors[r.Name] = Collector{Enabled: !f.disableDefaults, Interval: r.Interval, MaxAge: r.MaxAge}
	}
	return l
}

// loadDefaultAccount adds the account of a token that is set without a file.
func (l *loader) loadDefaultAccount(getenv func(string) string) {
	envar, file := Position{Field: tokenEnvar}, &l.flags.tokenFile
	secret := getenv(tokenEnvar)
	switch {
	case l.flags.Demo:
		if secret != "" {
			l.errs.add(envar, demoConflict, "account")
		}
		if file.isSet() {
			l.errs.add(file.position(), demoConflict, "account")
		}
	case secret != "" && file.isSet():
		l.errs.add(envar, "conflicts with %s: only one of the two may be set", file.position().Field)
	case secret != "":
		token, err := checkToken(secret)
		l.addAccount(Account{Name: "default", Token: promconfig.Secret(token)}, envar, envar, token, err)
	case file.isSet():
		token, err := NewTokenFile(file.value).read()
		l.addAccount(Account{Name: "default", TokenFile: file.value}, file.position(), file.position(), token, err)
	}
}

// demoConflict is the error for a setting that --demo provides itself.
const demoConflict = "conflicts with --demo: must not be set, because the demo has its own %s"

// loadFile reports whether the file is a readable YAML mapping, or there is none.
func (l *loader) loadFile() bool {
	if !l.flags.configFile.isSet() {
		return true
	}
	content, err := (&file{path: l.file, limit: maxFile}).read()
	if err != nil {
		l.errs.add(Position{File: l.file, Field: l.flags.configFile.position().Field}, "%s", err)
		return false
	}
	if root := l.parse(content); root != nil {
		l.visit("", root.Line, root, l.mapping(map[string]decodeFunc{
			"api":        l.api(),
			"accounts":   l.accounts,
			"collectors": l.collectors,
			"watches":    l.list(l.watch),
		}))
	}
	return !l.errs.has("")
}

// applyFlags gives the command line precedence over the file.
func (l *loader) applyFlags() {
	if l.flags.baseURL.isSet() {
		l.setBaseURL(l.flags.baseURL.position(), l.flags.baseURL.value)
	}
	for i, r := range l.flags.resources {
		if l.flags.toggles[i].isSet {
			settings := l.config.Collectors[r.Name]
			settings.Enabled = l.flags.toggles[i].enabled
			l.config.Collectors[r.Name] = settings
		}
	}
}

func (l *loader) accounts(path string, n *yaml.Node) {
	if l.flags.Demo && len(n.Content) > 0 {
		l.errs.add(l.position(path), demoConflict, "account")
		return
	}
	l.list(l.account)(path, n)
}

func (l *loader) account(path string, n *yaml.Node) {
	var a Account
	if !l.named(path, n, &a.Name, map[string]decodeFunc{"name": l.value(&a.Name, notText), "token_file": l.value(&a.TokenFile, notText)}) {
		return
	}
	tokenPos := l.position(path + ".token_file")
	var token string
	var err error
	switch {
	case a.TokenFile != "":
		a.TokenFile = promconfig.JoinDir(filepath.Dir(l.file), a.TokenFile)
		token, err = NewTokenFile(a.TokenFile).read()
	case !l.errs.has(tokenPos.Field, path+".token"):
		err = errors.New("missing: must be the path of a file that contains the token")
	}
	l.addAccount(a, l.position(path+".name"), tokenPos, token, err)
}

// named decodes a mapping whose name must be set. It returns false if it is no mapping.
func (l *loader) named(path string, n *yaml.Node, name *string, fields map[string]decodeFunc) bool {
	if !l.expectKind(yaml.MappingNode, path, n) {
		return false
	}
	l.mapping(fields)(path, n)
	if pos := l.position(path + ".name"); *name == "" && !l.errs.has(pos.Field) {
		l.errs.add(pos, "missing: must be a name")
	}
	return true
}

// addAccount also checks that name and token are valid and unique. An empty
// name or token already has an error; err is that of reading the token.
func (l *loader) addAccount(a Account, namePos, tokenPos Position, token string, err error) {
	l.addName(l.accountNames, a.Name, namePos)
	if err != nil {
		l.errs.add(tokenPos, "%s", l.withPath(err, a.TokenFile))
	} else if first, ok := l.tokens[token]; ok {
		l.errs.add(tokenPos, "duplicate token: must differ from %s, because the rate limit applies to each token", first)
	} else if token != "" {
		l.tokens[token] = tokenPos.Field
	}
	l.config.Accounts = append(l.config.Accounts, a)
}

// withPath adds to the error about a missing token file which path was tried, unless the path
// could be a token: a plain name, or a name in a directory that does not exist.
func (l *loader) withPath(err error, path string) error {
	parent, base := filepath.Dir(path), filepath.Dir(l.file)
	if !errors.Is(err, fs.ErrNotExist) || parent == filepath.Dir(parent) {
		return err
	}
	if _, missing := os.Stat(parent); missing != nil || parent == base {
		return fmt.Errorf("%w; relative paths begin at %s", err, base)
	}
	return fmt.Errorf("%w: %s", err, path)
}

// addName checks that a name is valid and not in use yet.
func (l *loader) addName(used map[string]string, name string, pos Position) {
	if name == "" {
		return
	}
	if !validName(name) {
		l.errs.add(pos, "invalid name: %s", nameRule)
	} else if first, ok := used[name]; ok {
		l.errs.add(pos, "duplicate name %q: must be unique, already used by %s", name, first)
	} else {
		used[name] = strings.TrimSuffix(pos.Field, ".name")
	}
}

const nameRule = "must be at most 256 bytes of UTF-8, not blank and without control characters"

func validName(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, unicode.IsControl)
}

func (l *loader) collectors(path string, n *yaml.Node) {
	fields := make(map[string]decodeFunc, len(l.flags.resources))
	for _, r := range l.flags.resources {
		fields[r.Name] = func(path string, n *yaml.Node) { l.collector(r, path, n) }
	}
	l.mapping(fields)(path, n)
}

func (l *loader) collector(r collector.Resource, path string, n *yaml.Node) {
	settings := Collector{Enabled: !l.flags.disableDefaults, Interval: r.Interval}
	minInterval, reason := time.Second, ""
	if r.MinInterval > minInterval {
		minInterval, reason = r.MinInterval, ", because the API caches the response that long"
	}
	l.mapping(map[string]decodeFunc{
		"enabled":  l.value(&settings.Enabled, notBoolean),
		"interval": l.duration(&settings.Interval, minInterval, maxInterval, reason),
		"max_age":  l.duration(&settings.MaxAge, time.Millisecond, maxMaxAge, ""),
	})(path, n)
	if l.errs.has(path + ".interval") {
		settings.Interval = 0 // unknown, so that no other error follows from it
	}
	switch {
	case settings.MaxAge == 0: // not set, or invalid
		settings.MaxAge = max(r.MaxAge, 3*settings.Interval)
	case settings.MaxAge < settings.Interval:
		l.errs.add(l.position(path+".max_age"), "%s is too short: must be at least the interval of %s",
			model.Duration(settings.MaxAge), model.Duration(settings.Interval))
	}
	l.config.Collectors[r.Name] = settings
}

// checkCollectors checks that something is exported, within the rate limits.
func (l *loader) checkCollectors() {
	var public, account bool
	for _, r := range l.flags.resources {
		enabled := l.config.Collectors[r.Name].Enabled
		public = public || enabled && !r.Account
		account = account || enabled && r.Account
	}
	hasAccounts := l.flags.Demo || len(l.config.Accounts) > 0 || l.errs.has("accounts", tokenEnvar)
	switch {
	case !public && !account:
		l.errs.add(l.position("collectors"), "nothing to export: at least one collector must be enabled")
	case !public && !hasAccounts:
		l.errs.add(l.position("collectors"), "nothing to export: at least one account must be set, because every enabled collector requires one")
	}
	l.checkRateLimit("api.rate_limit.public", l.config.scopeRate(l.flags.resources, false))
	if hasAccounts {
		l.checkRateLimit("api.rate_limit.account", l.config.scopeRate(l.flags.resources, true))
	}
	for _, w := range l.config.Watches {
		for _, needed := range w.Inputs() {
			if path := l.watchNames[w.Name]; path != "" && !l.config.Collectors[needed].Enabled {
				l.errs.add(l.position(path), "no data: its criteria need the collector %s, which must be enabled", needed)
			}
		}
	}
}

func (l *loader) checkRateLimit(path string, rate ScopeRate) {
	// The margin allows for the rounding of sums such as three times 4/3.
	const margin = 1e-9
	if l.errs.has(path) || rate.PerMinute <= float64(rate.Limit)+margin {
		return
	}
	// Rounded up, so that the message never shows the limit as sufficient.
	perMinute := math.Ceil(rate.PerMinute*10-margin) / 10
	l.errs.add(l.position(path), "%d is too low: must be at least %.1f, the requests per minute at the collectors' intervals", rate.Limit, perMinute)
}
