package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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
	for _, r := range l.flags.resources {
		l.checkCollector(r)
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
	l.loadDefaultAccount(getenv)
	if l.flags.Demo && len(configured) > 0 {
		l.errs.add(l.position("accounts"), demoConflict, "account")
		return
	}
	for i, a := range configured {
		if path := fmt.Sprintf("accounts[%d]", i); !l.errs.has(path) {
			l.checkAccount(path, a)
		}
	}
}

func (l *loader) checkAccount(path string, a Account) {
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

// addAccount checks that name and token are valid and unique. An empty token already has an
// error; err is that of reading the token.
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
	if l.errs.has(pos.Field) {
		return
	}
	if name == "" {
		l.errs.add(pos, "missing: must be a name")
	} else if !validName(name) {
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

func (l *loader) checkCollector(r collector.Resource) {
	path := "collectors." + r.Name
	settings := l.config.Collectors[r.Name]
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
	lists := map[string][]string{
		"plans": w.Plans, "families": w.Families, "locations": w.Locations, "regions": w.Regions, "countries": w.Countries,
	}
	for key, values := range lists {
		listPath := path + "." + key
		if l.lines[listPath] > 0 && len(values) == 0 && !l.errs.has(listPath) {
			l.errs.add(l.position(listPath), "empty list: must have at least one value")
		}
		for i, value := range values {
			switch pos := l.position(fmt.Sprintf("%s[%d]", listPath, i)); {
			case l.errs.has(pos.Field):
			case key == "countries" && !countryCode.MatchString(value):
				l.errs.add(pos, "invalid country code: must be two letters, like DE")
			case !validName(value):
				l.errs.add(pos, "invalid value: %s", nameRule)
			}
		}
	}
	bounds := map[string]*float64{
		"min_cores": w.MinCores, "min_memory_gib": w.MinMemoryGiB, "max_usd_per_month": w.MaxUSDPerMonth, "max_eur_per_month": w.MaxEURPerMonth,
	}
	for key, bound := range bounds {
		if bound != nil {
			checkRange(l, path+"."+key, *bound, 0, maxBound, "")
		}
	}
	namePos := l.position(path + ".name")
	unknown := slices.ContainsFunc(l.errs, func(e FieldError) bool {
		return e.Field != namePos.Field && strings.HasPrefix(e.Field, path+".")
	})
	if !unknown && reflect.DeepEqual(w, collector.Watch{Name: w.Name}) {
		l.errs.add(l.position(path), "no criterion: at least one must be set, because every plan would match")
	}
	for _, needed := range w.Inputs() {
		if !l.config.Collectors[needed].Enabled {
			l.errs.add(l.position(path), "no data: its criteria need the collector %s, which must be enabled", needed)
		}
	}
	l.addName(l.watchNames, w.Name, namePos)
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
