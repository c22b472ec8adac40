package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"server_rental_exporter/collector"
)

// Bounds of the settings.
const (
	maxTimeout  = model.Duration(5 * time.Minute)
	maxInterval = model.Duration(30 * 24 * time.Hour)
	maxMaxAge   = model.Duration(365 * 24 * time.Hour)
	maxName     = 256  // bytes, see nameRule
	maxBound    = 1e15 // far above every number of a plan

	// The provider requires fewer than 60 public requests per minute from one
	// address, and at most 120 with one token.
	maxPublic, maxAccount = 59, 120
)

// checkRange adds an error with a reason unless a setting is between two bounds.
func checkRange[T cmp.Ordered](l *loader, path string, value, least, most T, reason string) {
	if value >= least && value <= most || l.errs.has(path) {
		return
	}
	l.errs.add(l.position(path), "%v is out of range: must be from %v to %v%s", value, least, most, reason)
}

// checkSettings checks each setting by itself.
func (l *loader) checkSettings() {
	api := &l.config.API
	checkRange(l, "api.timeout", model.Duration(api.Timeout), model.Duration(time.Millisecond), maxTimeout, "")
	checkRange(l, "api.rate_limit.public", api.RateLimit.Public, 1, maxPublic, "")
	checkRange(l, "api.rate_limit.account", api.RateLimit.Account, 1, maxAccount, "")
	for i, r := range l.flags.resources {
		l.checkCollector(r, l.flags.toggles[i])
	}
	for i, w := range l.config.Watches {
		l.checkWatch(fmt.Sprintf("watches[%d]", i), w)
	}
}

// checkAccounts adds the account of a token that is set without a file before those of the
// file.
func (l *loader) checkAccounts(getenv func(string) string) {
	configured := l.config.Accounts
	l.config.Accounts = nil
	secret := option{envar: tokenEnvar, value: getenv(tokenEnvar)}
	var tokens []Position
	for _, o := range []*option{&secret, &l.flags.tokenFile} {
		if o.isSet() {
			tokens = append(tokens, o.position())
		}
	}
	switch {
	case l.flags.Demo:
		if len(configured) > 0 {
			tokens = append(tokens, l.position("accounts"))
		}
		for _, pos := range tokens {
			l.errs.add(pos, demoConflict, "account")
		}
		return
	case len(tokens) > 1:
		l.errs.add(tokens[0], "conflicts with %s: only one of the two may be set", tokens[1].Field)
	case len(tokens) == 1:
		a := Account{Name: "default", TokenFile: l.flags.tokenFile.value, Token: promconfig.Secret(secret.value)}
		l.addAccount(a, tokens[0], tokens[0])
	}
	for i, a := range configured {
		if path := fmt.Sprintf("accounts[%d]", i); !l.errs.has(path) {
			a.TokenFile = promconfig.JoinDir(filepath.Dir(l.file), a.TokenFile)
			l.addAccount(a, l.position(path+".name"), l.position(path+".token_file"))
		}
	}
}

// addAccount checks that name and token are valid and unique.
func (l *loader) addAccount(a Account, namePos, tokenPos Position) {
	l.addName("account", a.Name, namePos)
	token, err := a.TokenReader()()
	missing := tokenPos.File != "" && a.TokenFile == ""
	key := [2]string{"token", token}
	switch first, ok := l.used[key]; {
	case missing && l.errs.has(tokenPos.Field, strings.TrimSuffix(tokenPos.Field, "_file")):
	case missing:
		l.errs.add(tokenPos, "missing: must be the path of a file that contains the token")
	case err != nil:
		l.errs.add(tokenPos, "%s", withPath(err, a.TokenFile, filepath.Dir(tokenPos.File)))
	case ok:
		l.errs.add(tokenPos, "duplicate token: must differ from %s, because the rate limit applies to each token", first)
	default:
		l.used[key] = tokenPos.Field
	}
	l.config.Accounts = append(l.config.Accounts, a)
}

// withPath adds to the error about a missing token file which path was tried, unless the path
// could be a token: a plain name, or a name in a directory that does not exist.
func withPath(err error, path, base string) error {
	parent := filepath.Dir(path)
	if !errors.Is(err, fs.ErrNotExist) || parent == filepath.Dir(parent) {
		return err
	}
	if _, missing := os.Stat(parent); missing != nil || parent == base {
		return fmt.Errorf("%w; relative paths begin at %s", err, base)
	}
	return fmt.Errorf("%w: %s", err, path)
}

// addName checks that a name is valid, and in use for nothing else of the kind.
func (l *loader) addName(kind, name string, pos Position) {
	key := [2]string{kind, name}
	switch first, ok := l.used[key]; {
	case l.errs.has(pos.Field):
	case name == "":
		l.errs.add(pos, "missing: must be a name")
	case !validName(name):
		l.errs.add(pos, "invalid name: %s", nameRule)
	case ok:
		l.errs.add(pos, "duplicate name %q: must be unique, already used by %s", name, first)
	default:
		l.used[key] = strings.TrimSuffix(pos.Field, ".name")
	}
}

const nameRule = "must be at most 256 bytes of UTF-8, not blank and without control characters"

func validName(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, unicode.IsControl)
}

// checkCollector gives the flag of a collector precedence over the file, and checks its
// settings.
func (l *loader) checkCollector(r collector.Resource, flag toggle) {
	path := "collectors." + r.Name
	settings := l.config.Collectors[r.Name]
	if flag.isSet {
		settings.Enabled = flag.enabled
	}
	least, reason := time.Second, ""
	if r.MinInterval > least {
		least, reason = r.MinInterval, ", because the API caches the response that long"
	}
	checkRange(l, path+".interval", model.Duration(settings.Interval), model.Duration(least), maxInterval, reason)
	if l.errs.has(path + ".interval") {
		settings.Interval = 0 // unknown, so that no other error follows from it
	}
	if _, isSet := l.lines[path+".max_age"]; isSet {
		least := max(model.Duration(settings.Interval), model.Duration(time.Millisecond))
		checkRange(l, path+".max_age", model.Duration(settings.MaxAge), least, maxMaxAge, ", because it is at least the interval")
	} else {
		settings.MaxAge = max(r.MaxAge, 3*settings.Interval)
	}
	l.config.Collectors[r.Name] = settings
}

var countryCode = regexp.MustCompile(`^[A-Za-z]{2}$`)

func (l *loader) checkWatch(path string, w collector.Watch) {
	if l.errs.has(path) {
		return
	}
	for key, criterion := range fieldsOf(reflect.ValueOf(w)) {
		switch value := criterion.Interface().(type) {
		case []string:
			l.checkAlternatives(path+"."+key, value)
		case *float64:
			if value != nil {
				checkRange(l, path+"."+key, *value, 0, maxBound, "")
			}
		}
	}
	if !l.errs.below(path+".", path+".name") && reflect.DeepEqual(w, collector.Watch{Name: w.Name}) {
		l.errs.add(l.position(path), "no criterion: at least one must be set, because every plan would match")
	}
	for _, needed := range w.Inputs() {
		if !l.config.Collectors[needed].Enabled {
			l.errs.add(l.position(path), "no data: its criteria need the collector %s, which must be enabled", needed)
		}
	}
	l.addName("watch", w.Name, l.position(path+".name"))
}

// checkAlternatives checks the values of one criterion of a watch.
func (l *loader) checkAlternatives(path string, values []string) {
	if l.lines[path] > 0 && len(values) == 0 && !l.errs.has(path) {
		l.errs.add(l.position(path), "empty list: must have at least one value")
	}
	for i, value := range values {
		switch pos := l.position(fmt.Sprintf("%s[%d]", path, i)); {
		case l.errs.has(pos.Field):
		case strings.HasSuffix(path, ".countries") && !countryCode.MatchString(value):
			l.errs.add(pos, "invalid country code: must be two letters, like DE")
		case !validName(value):
			l.errs.add(pos, "invalid value: %s", nameRule)
		}
	}
}

// checkCollectors checks that something is exported, within the rate limits.
func (l *loader) checkCollectors() {
	hasAccounts := l.flags.Demo || len(l.config.Accounts) > 0 || l.errs.has("accounts", tokenEnvar)
	exports := func(r collector.Resource) bool {
		return l.config.Collectors[r.Name].Enabled && (hasAccounts || !r.Account)
	}
	if !slices.ContainsFunc(l.flags.resources, exports) {
		l.errs.add(l.position("collectors"), "nothing to export: at least one collector must be enabled, and an account be set if it requires one")
	}
	l.checkRateLimit("api.rate_limit.public", l.config.RequestRate(l.flags.resources, false))
	if hasAccounts {
		l.checkRateLimit("api.rate_limit.account", l.config.RequestRate(l.flags.resources, true))
	}
}

func (l *loader) checkRateLimit(path string, rate Rate) {
	// The margin allows for the rounding of sums such as three times 4/3.
	const margin = 1e-9
	if least := math.Ceil(rate.PerMinute - margin); !l.errs.has(path) && float64(rate.Limit) < least {
		l.errs.add(l.position(path), "%d is too low: must be at least %.0f, because the collectors make %.4g requests per minute", rate.Limit, least, rate.PerMinute)
	}
}
