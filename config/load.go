package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
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
	maxName     = 256 // bytes

	// The provider requires fewer than 60 public requests per minute from one
	// address, and at most 120 with one token.
	maxPublic, maxAccount = 59, 120
)

// loader holds the state of one call of Load.
type loader struct {
	document
	flags  *Flags
	config *Config
	// baseURLPosition is where the base URL in use was set.
	baseURLPosition Position
	// accountNames, watchNames and tokens map those in use to the field that
	// set them first.
	accountNames, watchNames, tokens map[string]string
}

func newLoader(f *Flags) *loader {
	l := &loader{
		document:     document{file: f.configFile.value, lines: map[string]int{}, budget: maxValues},
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
		l.config.Collectors[r.Name] = Collector{Enabled: true, Interval: r.Interval, MaxAge: r.MaxAge}
	}
	return l
}

// loadDefaultAccount adds the account of a token that is set without a file.
func (l *loader) loadDefaultAccount(getenv func(string) string) {
	envar, file := Position{Field: tokenEnvar}, &l.flags.tokenFile
	secret := getenv(tokenEnvar)
	switch {
	case l.flags.demo:
		if secret != "" {
			l.conflictsWithDemo(envar, "account")
		}
		if file.isSet() {
			l.conflictsWithDemo(file.position(), "account")
		}
	case secret != "" && file.isSet():
		l.errs.add(envar, "conflicts with %s: only one of the two may be set", file.position().Field)
	case secret != "":
		token, err := checkToken(secret)
		l.addAccount(Account{Name: "default", Token: promconfig.Secret(token)}, envar, envar, token, err)
	case file.isSet():
		token, err := readToken(file.value)
		l.addAccount(Account{Name: "default", TokenFile: file.value}, file.position(), file.position(), token, err)
	}
}

// conflictsWithDemo adds an error for a setting that --demo provides itself.
func (l *loader) conflictsWithDemo(pos Position, provided string) {
	l.errs.add(pos, "conflicts with --demo: must not be set, because the demo has its own %s", provided)
}

// loadFile reports whether the file is a readable YAML mapping, or there is none.
func (l *loader) loadFile() bool {
	if !l.flags.configFile.isSet() {
		return true
	}
	content, err := readFile(l.file, maxFile)
	if err != nil {
		l.errs.add(Position{File: l.file, Field: l.flags.configFile.position().Field}, "%s", err)
		return false
	}
	before := len(l.errs)
	root := l.parse(content)
	if len(l.errs) > before {
		return false
	}
	if root == nil {
		return true
	}
	l.visit("", root.Line, root, l.mapping(map[string]decodeFunc{
		"api":        l.api(),
		"accounts":   l.accounts(),
		"collectors": l.collectors(),
		"watches":    l.list(l.watch),
	}))
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

func (l *loader) api() decodeFunc {
	api := &l.config.API
	return l.mapping(map[string]decodeFunc{
		"base_url": func(path string, n *yaml.Node) {
			if l.expectKind(yaml.ScalarNode, path, n) {
				l.setBaseURL(l.position(path), n.Value)
			}
		},
		"timeout": l.duration(&api.Timeout, time.Millisecond, maxTimeout, ""),
		"http":    l.http,
		"rate_limit": l.mapping(map[string]decodeFunc{
			"public":  l.integer(&api.RateLimit.Public, 1, maxPublic),
			"account": l.integer(&api.RateLimit.Account, 1, maxAccount),
		}),
	})
}

// setBaseURL repeats no part of the value: it may contain a password.
func (l *loader) setBaseURL(pos Position, value string) {
	if l.flags.demo {
		l.conflictsWithDemo(pos, "API")
		return
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		l.errs.add(pos, "invalid URL: must be http or https, like https://rental.example/api/v1")
		return
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			l.errs.add(pos, "invalid port: must be from 1 to 65535")
		}
	}
	if u.User != nil {
		l.errs.add(pos, "user information not allowed: tokens must be set as accounts")
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	if !strings.HasSuffix(u.EscapedPath(), "/api/v1") || u.RawQuery != "" || u.ForceQuery || strings.Contains(value, "#") {
		l.errs.add(pos, "invalid path: must end in /api/v1, without query or fragment")
	}
	l.config.API.BaseURL, l.baseURLPosition = u, pos
}

// http checks the keys and values first. The package of the settings then
// decodes them and checks their combination; its errors repeat no secrets.
func (l *loader) http(path string, n *yaml.Node) {
	before := len(l.errs)
	fields := l.structFields(reflect.TypeFor[promconfig.HTTPClientConfig]())
	// Do not suggest forbidden keys for a misspelled one.
	maps.DeleteFunc(fields, func(key string, _ decodeFunc) bool { return forbiddenKey(joinPath(path, key)) != "" })
	l.mapping(fields)(path, n)
	if len(l.errs) > before {
		return
	}
	http := &l.config.API.HTTP
	if err := n.Decode(http); err != nil {
		l.errs.add(l.position(path), "%s", err)
		return
	}
	http.SetDirectory(filepath.Dir(l.file))
	l.checkHTTPFiles(path, http)
}

// checkHTTPFiles reports a wrong path before anything is served. The files are
// read again for each connection.
func (l *loader) checkHTTPFiles(path string, http *promconfig.HTTPClientConfig) {
	if _, err := promconfig.NewTLSConfig(&http.TLSConfig); err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = fmt.Errorf("cannot read ca_file, cert_file or key_file: %w", pathErr.Err)
		}
		l.errs.add(l.position(path+".tls_config"), "%s", err)
	}
	if http.HTTPHeaders == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(http.HTTPHeaders.Headers)) {
		for i, file := range http.HTTPHeaders.Headers[name].Files {
			if _, err := readFile(file, maxFile); err != nil {
				header := joinPath(path+".http_headers", name)
				l.errs.add(l.position(fmt.Sprintf("%s.files[%d]", header, i)), "cannot read: %s", err)
			}
		}
	}
}

func (l *loader) accounts() decodeFunc {
	list := l.list(l.account)
	return func(path string, n *yaml.Node) {
		if l.flags.demo && len(n.Content) > 0 {
			l.conflictsWithDemo(l.position(path), "account")
			return
		}
		list(path, n)
	}
}

func (l *loader) account(path string, n *yaml.Node) {
	var a Account
	if !l.expectKind(yaml.MappingNode, path, n) {
		return
	}
	before := len(l.errs)
	l.mapping(map[string]decodeFunc{"name": l.text(&a.Name), "token_file": l.text(&a.TokenFile)})(path, n)
	namePos, tokenPos := l.position(path+".name"), l.position(path+".token_file")
	if a.Name == "" && !l.errs[before:].has(namePos.Field) {
		l.errs.add(namePos, "missing: must be a name")
	}
	var token string
	var err error
	switch {
	case a.TokenFile != "":
		a.TokenFile = promconfig.JoinDir(filepath.Dir(l.file), a.TokenFile)
		token, err = readToken(a.TokenFile)
	case !l.errs[before:].has(tokenPos.Field, path+".token"):
		err = errors.New("missing: must be the path of a file that contains the token")
	}
	l.addAccount(a, namePos, tokenPos, token, err)
}

// addAccount also checks that name and token are valid and unique. An empty
// name or token already has an error; err is that of reading the token.
func (l *loader) addAccount(a Account, namePos, tokenPos Position, token string, err error) {
	l.addName(l.accountNames, a.Name, namePos)
	if err != nil {
		l.errs.add(tokenPos, "%s", err)
	} else if first, ok := l.tokens[token]; ok {
		l.errs.add(tokenPos, "duplicate token: must differ from %s, because the rate limit applies to each token", first)
	} else if token != "" {
		l.tokens[token] = tokenPos.Field
	}
	l.config.Accounts = append(l.config.Accounts, a)
}

// addName checks that a name is valid and not in use yet.
func (l *loader) addName(used map[string]string, name string, pos Position) {
	if name == "" {
		return
	}
	if !validName(name) {
		l.errs.add(pos, "invalid name: must be at most %d bytes of UTF-8, not blank and without control characters", maxName)
	} else if first, ok := used[name]; ok {
		l.errs.add(pos, "duplicate name %q: must be unique, already used by %s", name, first)
	} else {
		used[name] = strings.TrimSuffix(pos.Field, ".name")
	}
}

func validName(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, unicode.IsControl)
}

func (l *loader) collectors() decodeFunc {
	fields := make(map[string]decodeFunc, len(l.flags.resources))
	for _, r := range l.flags.resources {
		fields[r.Name] = func(path string, n *yaml.Node) { l.collector(r, path, n) }
	}
	return l.mapping(fields)
}

func (l *loader) collector(r collector.Resource, path string, n *yaml.Node) {
	settings := Collector{Enabled: true, Interval: r.Interval}
	minInterval, reason := time.Second, ""
	if r.MinInterval > minInterval {
		minInterval, reason = r.MinInterval, ", because the API caches the answer that long"
	}
	l.mapping(map[string]decodeFunc{
		"enabled":  l.boolean(&settings.Enabled),
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

// checkAPI checks the base URL in combination with accounts and proxy.
func (l *loader) checkAPI() {
	if l.flags.demo {
		return
	}
	base := l.config.API.BaseURL
	if base == nil {
		if !l.errs.has("api", "api.base_url", l.flags.baseURL.position().Field) {
			l.errs.add(l.position("api.base_url"), "missing: must be set here or with %s", l.flags.baseURL.flag)
		}
		return
	}
	if base.Scheme != "http" || len(l.config.Accounts) == 0 {
		return
	}
	if !isLoopback(base.Hostname()) {
		l.errs.add(l.baseURLPosition, "plain HTTP not allowed with accounts: must be https or a loopback address, because tokens would be sent unencrypted")
	}
	if proxy := l.config.API.HTTP.ProxyURL.URL; proxy != nil && proxy.String() != "" {
		l.errs.add(l.position("api.http.proxy_url"), "proxy not allowed with accounts and plain HTTP: base_url must be https, because the proxy would see the tokens")
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

// checkCollectors checks that something is exported, within the rate limits.
func (l *loader) checkCollectors() {
	var public, account bool
	for _, r := range l.flags.resources {
		enabled := l.config.Collectors[r.Name].Enabled
		public = public || enabled && !r.Account
		account = account || enabled && r.Account
	}
	hasAccounts := l.flags.demo || len(l.config.Accounts) > 0 || l.errs.has("accounts", tokenEnvar)
	switch {
	case !public && !account:
		l.errs.add(l.position("collectors"), "nothing to export: at least one collector must be enabled")
	case !public && !hasAccounts:
		l.errs.add(l.position("collectors"), "nothing to export: at least one account must be set, because every enabled collector requires one")
	}
	publicRate, accountRate := l.config.scopeRates(l.flags.resources)
	l.checkRateLimit("api.rate_limit.public", publicRate)
	if hasAccounts {
		l.checkRateLimit("api.rate_limit.account", accountRate)
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
