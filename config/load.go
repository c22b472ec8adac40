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
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

const (
	maxTimeout  = 5 * time.Minute
	maxInterval = 30 * 24 * time.Hour
	maxMaxAge   = 365 * 24 * time.Hour
	maxName     = 256 // bytes

	// The API asks for less than 60 public requests per minute and address,
	// and allows 120 with one token.
	maxPublic, maxAccount = 59, 120
)

// loader is one run of Load.
type loader struct {
	document
	flags  *Flags
	config *Config
	// baseURLAt is where the base URL that counts came from.
	baseURLAt FieldError
	// names and tokens are the fields that took them; a token is never printed.
	names, tokens map[string]string
}

func newLoader(f *Flags) *loader {
	l := &loader{
		document: document{file: f.configFile.value, lines: map[string]int{}, budget: maxValues},
		flags:    f,
		names:    map[string]string{},
		tokens:   map[string]string{},
		config: &Config{
			API: API{
				Timeout:   10 * time.Second,
				HTTP:      promconfig.DefaultHTTPClientConfig,
				RateLimit: RateLimit{Public: 30, Account: 60},
			},
			Collectors: make(map[string]Collector, len(f.specs)),
		},
	}
	for _, s := range f.specs {
		l.config.Collectors[s.Name] = Collector{Enabled: true, Interval: s.Interval, MaxAge: s.MaxAge}
	}
	return l
}

// fromEnvironment adds the account of a token that is given without a file.
func (l *loader) fromEnvironment(getenv func(string) string) {
	at, file := FieldError{Field: tokenEnvar}, &l.flags.tokenFile
	secret := getenv(tokenEnvar)
	switch {
	case l.flags.demo:
		if secret != "" {
			l.errs.add(at, "%s", conflictsWithDemo("account"))
		}
		if file.given() {
			l.errs.add(file.place(), "%s", conflictsWithDemo("account"))
		}
	case secret != "" && file.given():
		l.errs.add(at, "set together with %s: must be one of the two", file.place().Field)
	case secret != "":
		token, err := checkToken(secret)
		l.account(Account{Name: "default", Token: promconfig.Secret(token)}, at, at, token, err)
	case file.given():
		token, err := readToken(file.value)
		l.account(Account{Name: "default", TokenFile: file.value}, file.place(), file.place(), token, err)
	}
}

// fromFile reports whether the file could be read and is a YAML mapping;
// that there is none is fine.
func (l *loader) fromFile() bool {
	if !l.flags.configFile.given() {
		return true
	}
	content, err := readFile(l.file, maxFile)
	if err != nil {
		l.errs.add(FieldError{File: l.file, Field: l.flags.configFile.place().Field}, "%s", err)
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
	l.value("", root.Line, root, l.mapping(map[string]decode{
		"api":        l.api(),
		"accounts":   l.accounts(),
		"collectors": l.collectors(),
	}))
	return !l.errs.at("")
}

// fromFlags lets the command line win over the file.
func (l *loader) fromFlags() {
	if l.flags.baseURL.given() {
		l.baseURL(l.flags.baseURL.place(), l.flags.baseURL.value)
	}
	for i, s := range l.flags.specs {
		if l.flags.switches[i].set {
			collector := l.config.Collectors[s.Name]
			collector.Enabled = l.flags.switches[i].on
			l.config.Collectors[s.Name] = collector
		}
	}
}

func (l *loader) api() decode {
	api := &l.config.API
	return l.mapping(map[string]decode{
		"base_url": func(path string, n *yaml.Node) {
			if l.expectKind(yaml.ScalarNode, path, n) {
				l.baseURL(l.at(path), n.Value)
			}
		},
		"timeout": l.duration(&api.Timeout, time.Millisecond, maxTimeout, ""),
		"http":    l.http,
		"rate_limit": l.mapping(map[string]decode{
			"public":  l.integer(&api.RateLimit.Public, 1, maxPublic),
			"account": l.integer(&api.RateLimit.Account, 1, maxAccount),
		}),
	})
}

// baseURL repeats nothing of what was given: it may contain a password.
func (l *loader) baseURL(at FieldError, given string) {
	if l.flags.demo {
		l.errs.add(at, "%s", conflictsWithDemo("API"))
		return
	}
	u, err := url.Parse(given)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		l.errs.add(at, "not an absolute URL: must be like https://rental.example/api/v1")
		return
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			l.errs.add(at, "has a port that is none: must be from 1 to 65535")
		}
	}
	if u.User != nil {
		l.errs.add(at, "has user information: must be without, tokens belong to accounts")
	}
	if u.RawQuery != "" || u.ForceQuery {
		l.errs.add(at, "has a query: must be without")
	}
	if strings.Contains(given, "#") {
		l.errs.add(at, "has a fragment: must be without")
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	if !strings.HasSuffix(u.EscapedPath(), "/api/v1") {
		l.errs.add(at, "has another path: must end in /api/v1")
	}
	l.config.API.BaseURL, l.baseURLAt = u, at
}

// http is decoded by its own package once its shape is known to be right; what
// that then finds is about how settings go together, and repeats no values.
func (l *loader) http(path string, n *yaml.Node) {
	before := len(l.errs)
	fields := map[string]decode{}
	l.structure(reflect.TypeFor[promconfig.HTTPClientConfig](), fields)
	// Not to be offered in place of a misspelled key.
	maps.DeleteFunc(fields, func(key string, _ decode) bool { return forbiddenKey(join(path, key)) != "" })
	l.mapping(fields)(path, n)
	if len(l.errs) > before {
		return
	}
	http := &l.config.API.HTTP
	if err := n.Decode(http); err != nil {
		l.errs.add(l.at(path), "%s", err)
		return
	}
	http.SetDirectory(filepath.Dir(l.file))
	// The files are read again at each connection, but a wrong path is better
	// known before anything is served.
	if _, err := promconfig.NewTLSConfig(&http.TLSConfig); err != nil {
		var unreadable *fs.PathError
		if errors.As(err, &unreadable) {
			err = errors.New("a file named here cannot be read: " + unreadable.Err.Error())
		}
		l.errs.add(l.at(path+".tls_config"), "%s", err)
	}
}

func (l *loader) accounts() decode {
	each := l.list(l.fileAccount)
	return func(path string, n *yaml.Node) {
		if l.flags.demo && len(n.Content) > 0 {
			l.errs.add(l.at(path), "%s", conflictsWithDemo("account"))
			return
		}
		each(path, n)
	}
}

func (l *loader) fileAccount(path string, n *yaml.Node) {
	var a Account
	if !l.expectKind(yaml.MappingNode, path, n) {
		return
	}
	before := len(l.errs)
	l.mapping(map[string]decode{"name": l.text(&a.Name), "token_file": l.text(&a.TokenFile)})(path, n)
	nameAt, tokenAt := l.at(path+".name"), l.at(path+".token_file")
	if a.Name == "" && !l.errs[before:].at(nameAt.Field) {
		l.errs.add(nameAt, "missing: must be a name")
	}
	var token string
	var err error
	switch {
	case a.TokenFile != "":
		a.TokenFile = promconfig.JoinDir(filepath.Dir(l.file), a.TokenFile)
		token, err = readToken(a.TokenFile)
	case !l.errs[before:].at(tokenAt.Field, path+".token"):
		err = errors.New("missing: must be the path of a file with the token")
	}
	l.account(a, nameAt, tokenAt, token, err)
}

// account adds an account, whose token was read with the error err. An empty
// name or token has its fault already.
func (l *loader) account(a Account, nameAt, tokenAt FieldError, token string, err error) {
	control := strings.IndexFunc(a.Name, unicode.IsControl) >= 0
	blank := a.Name != "" && strings.TrimSpace(a.Name) == ""
	if len(a.Name) > maxName || control || blank || !utf8.ValidString(a.Name) {
		l.errs.add(nameAt, "not a name: must be UTF-8 of at most %d bytes, not blank and without control characters", maxName)
	} else if first, taken := l.names[a.Name]; taken {
		l.errs.add(nameAt, "%q is already the name of %s: must be unique", a.Name, first)
	} else if a.Name != "" {
		l.names[a.Name] = strings.TrimSuffix(nameAt.Field, ".name")
	}
	if err != nil {
		l.errs.add(tokenAt, "%s", err)
	} else if first, taken := l.tokens[token]; taken {
		l.errs.add(tokenAt, "the same token as %s: must differ, because each token has one request budget", first)
	} else if token != "" {
		l.tokens[token] = tokenAt.Field
	}
	l.config.Accounts = append(l.config.Accounts, a)
}

func (l *loader) collectors() decode {
	fields := make(map[string]decode, len(l.flags.specs))
	for _, s := range l.flags.specs {
		fields[s.Name] = func(path string, n *yaml.Node) { l.collector(s, path, n) }
	}
	return l.mapping(fields)
}

func (l *loader) collector(s CollectorSpec, path string, n *yaml.Node) {
	collector := Collector{Enabled: true, Interval: s.Interval}
	minValue, reason := time.Second, ""
	if s.MinInterval > minValue {
		minValue, reason = s.MinInterval, fmt.Sprintf(", because the API caches for %s: a shorter interval costs requests and gives nothing fresher", model.Duration(s.MinInterval))
	}
	l.mapping(map[string]decode{
		"enabled":  l.boolean(&collector.Enabled),
		"interval": l.duration(&collector.Interval, minValue, maxInterval, reason),
		"max_age":  l.duration(&collector.MaxAge, time.Millisecond, maxMaxAge, ""),
	})(path, n)
	switch {
	case collector.MaxAge == 0: // not given, or faulty
		collector.MaxAge = max(s.MaxAge, 3*collector.Interval)
	case collector.MaxAge < collector.Interval:
		l.errs.add(l.at(path+".max_age"), "%s is too short: must be at least the interval of %s",
			model.Duration(collector.MaxAge), model.Duration(collector.Interval))
	}
	l.config.Collectors[s.Name] = collector
}

// checkAPI checks what base URL, accounts and proxy mean together.
func (l *loader) checkAPI() {
	if l.flags.demo {
		return
	}
	base := l.config.API.BaseURL
	if base == nil {
		if !l.errs.at("api", "api.base_url", l.flags.baseURL.place().Field) {
			l.errs.add(l.at("api.base_url"), "missing: must be set here or with %s", l.flags.baseURL.flag)
		}
		return
	}
	if base.Scheme != "http" || len(l.config.Accounts) == 0 {
		return
	}
	if !loopback(base.Hostname()) {
		l.errs.add(l.baseURLAt, "plain http: must be https, or a loopback address, where there are accounts: a token would travel in the clear")
	}
	if proxy := l.config.API.HTTP.ProxyURL.URL; proxy != nil && proxy.String() != "" {
		l.errs.add(l.at("api.http.proxy_url"), "not together with accounts and a base URL of plain http: the proxy would see the tokens in the clear")
	}
}

func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.IsLoopback()
}

// checkCollectors checks that something is exported, within the rate limits.
func (l *loader) checkCollectors() {
	var public, account bool
	for _, s := range l.flags.specs {
		collector := l.config.Collectors[s.Name]
		public = public || collector.Enabled && !s.Account
		account = account || collector.Enabled && s.Account
	}
	accounts := l.flags.demo || len(l.config.Accounts) > 0 || l.errs.at("accounts", tokenEnvar)
	switch {
	case !public && !account:
		l.errs.add(l.at("collectors"), "nothing to export: must be at least one enabled")
	case !public && !accounts:
		l.errs.add(l.at("collectors"), "nothing to export: must be an account, because every enabled collector asks for one")
	}
	publicCost, accountCost := l.config.scopes(l.flags.specs)
	l.checkLimit("api.rate_limit.public", publicCost)
	if accounts {
		l.checkLimit("api.rate_limit.account", accountCost)
	}
}

// checkLimit leaves a limit of 0 alone, which has its fault already.
func (l *loader) checkLimit(path string, cost ScopeRate) {
	// The margin forgives the rounding of sums such as three times 4/3.
	const margin = 1e-9
	if cost.Limit == 0 || cost.PerMinute <= float64(cost.Limit)+margin {
		return
	}
	// Rounded up, so that a need is never printed as the limit it exceeds.
	need := math.Ceil(cost.PerMinute*10-margin) / 10
	l.errs.add(l.at(path), "%d is too low: must be at least the %.1f requests per minute that the collectors' intervals need", cost.Limit, need)
}
