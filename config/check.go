package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"golang.org/x/net/http/httpguts"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// Bounds of the settings.
const (
	maxInterval = 30 * 24 * time.Hour
	maxMaxAge   = 365 * 24 * time.Hour
	minSoldOut  = 2 * time.Second
	maxShards   = 1000 // far above what one provider's rate limits allow
	maxWatches  = 100  // with 2,000 plans, they make 200,000 series

	// Bytes of the configuration file, where 100,000 accounts are far less, and of a file that is read at each request.
	maxFile, maxSecret = 32 << 20, 64 << 10

	// Requests in a minute: the provider requires fewer than 60 public ones from one address, and
	// at most 120 with one token.
	maxPublic, maxAccount = 59, 120
)

// checkAPI checks how requests are sent. The flag of the base URL has precedence over the file. No
// message repeats a part of the URL: it may contain a password.
func (l *loader) checkAPI() {
	l.API.Timeout = l.duration("api.timeout", &l.API.TimeoutText, 0, time.Millisecond, 5*time.Minute)
	l.checkHTTP()
	place, address := l.at("api.base_url"), l.API.Address
	if l.flags.baseURL != "" {
		place, address = "--api.base-url", l.flags.baseURL
	}
	if l.flags.Demo && address == "" {
		return
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	switch {
	case err != nil || !validURL(u, "http", "https"):
		l.add(place, "missing or invalid URL: must be http or https, like https://rental.example/api/v1")
	case u.User != nil:
		l.add(place, "user information not allowed: tokens must be set as accounts")
	case !strings.HasSuffix(u.Path, "/api/v1") || strings.ContainsAny(address, "?#"):
		l.add(place, "invalid path: must end in /api/v1, without query or fragment")
	case u.Scheme == "http" && l.mayHaveAccounts() && !l.isLocal(u):
		l.add(place, "plain HTTP not allowed with accounts: must be https, or a loopback address without a proxy, because tokens would be sent unencrypted")
	}
	l.API.BaseURL = u
	if err == nil && l.API.HTTP.ProxyFromEnvironment {
		if proxy, err := l.API.HTTP.Proxy()(&http.Request{URL: u}); err != nil || proxy != nil && !validProxy(proxy) {
			l.add(l.at("api.http.proxy_from_environment"), "invalid URL in the environment: %s", proxyRule)
		}
	}
}

const proxyRule = "must be http, https, socks5 or socks5h, like http://proxy.example:3128"

func validProxy(u *url.URL) bool { return validURL(u, "http", "https", "socks5", "socks5h") }

// validURL returns whether a URL has one of the schemes, a host, and no port that nothing can connect to.
func validURL(u *url.URL, schemes ...string) bool {
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16)
	return slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && err == nil && port > 0
}

// mayHaveAccounts returns whether there are accounts, or patterns that may find some later.
func (l *loader) mayHaveAccounts() bool { return len(l.Accounts)+len(l.AccountFiles) > 0 }

// isLocal returns whether requests to a URL do not leave this machine, also not by a proxy, which is
// asked for as the transport does.
func (l *loader) isLocal(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	isLoopback := strings.EqualFold(u.Hostname(), "localhost") || err == nil && address.IsLoopback()
	proxyOf := l.API.HTTP.Proxy()
	if !isLoopback || proxyOf == nil {
		return isLoopback
	}
	proxy, err := proxyOf(&http.Request{URL: u})
	return proxy == nil && err == nil
}

// checkHTTP checks the settings of the HTTP client with the library that uses them, and makes
// their paths relative to the file.
func (l *loader) checkHTTP() {
	settings, place := &l.API.HTTP, l.at("api.http")
	l.checkHeaders(place)
	settings.SetDirectory(filepath.Dir(l.flags.configFile))
	proxy, err := settings.ProxyURL.URL, settings.invalid
	if isSet := proxy != nil && proxy.String() != ""; errors.As(err, new(*url.Error)) || isSet && !validProxy(proxy) { // the library's message may repeat a password
		err = errors.New("proxy_url: invalid URL: " + proxyRule)
	}
	if err == nil {
		err = rentalapi.CheckFiles(settings.HTTPClientConfig)
	}
	if err == nil {
		_, err = promconfig.NewTLSConfig(&settings.TLSConfig)
	}
	if err != nil {
		l.add(place, "%s", err)
	}
	if settings.Authorization != nil || settings.BasicAuth != nil || settings.OAuth2 != nil {
		l.add(place, "credentials not allowed: tokens must be set as accounts")
	}
}

// checkHeaders checks what the library checks only when a request is sent.
func (l *loader) checkHeaders(place string) {
	headers := cmp.Or(l.API.HTTP.HTTPHeaders, &promconfig.Headers{}).Headers
	names := slices.AppendSeq(slices.Collect(maps.Keys(l.API.HTTP.ProxyConnectHeader)), maps.Keys(headers))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		place := fmt.Sprintf("%s: header %q", place, name)
		if !httpguts.ValidHeaderFieldName(name) {
			l.add(place, "invalid name: must be letters, digits and characters like - and _")
		}
		for i, file := range headers[name].Files {
			if _, err := readFile(l.join(file), maxSecret); err != nil {
				l.add(filePlace(fmt.Sprintf("%s: files[%d]", place, i), file, l.join(file)), "%s", err)
			}
		}
	}
}

// checkCollectors checks the settings of all collectors, and that they are within the rate
// limits together.
func (l *loader) checkCollectors() {
	for _, r := range collector.Resources() {
		l.checkCollector(r)
	}
	public, account := l.requestRates()
	l.checkRateLimit("api.rate_limit.public", l.API.RateLimit.Public, maxPublic, public)
	l.checkRateLimit("api.rate_limit.account", l.API.RateLimit.Account, maxAccount, account)
}

// requestRates returns the numbers of requests that the enabled collectors make in a minute, to the
// public API and with the token of each account, while everything is sold out and lists are as long
// as they may be.
func (l *loader) requestRates() (public, account float64) {
	for _, r := range collector.Resources() {
		timing, isEnabled := l.Collectors[r.Name]
		rate := float64(max(1, r.MaxRequests)) * float64(time.Minute) / float64(cmp.Or(timing.SoldOutInterval, timing.Interval))
		switch {
		case !isEnabled, r.Account && !l.mayHaveAccounts():
		case r.Account:
			account += rate
		default:
			public += rate
		}
	}
	return public, account
}

// checkCollector checks the settings of a collector: the flag, then those of the file, then the defaults.
func (l *loader) checkCollector(r collector.Resource) {
	var settings collector.Timing
	file, path := l.Settings[collectorName(r.Name)], "collectors."+r.Name
	settings.Interval = l.duration(path+".interval", file.Interval, r.Interval, max(time.Second, r.MinInterval), maxInterval)
	settings.MaxAge = l.duration(path+".max_age", file.MaxAge, max(r.MaxAge, 3*settings.Interval), 2*settings.Interval, maxMaxAge)
	switch d := file.SoldOutInterval; {
	case d != nil && r.SoldOutInterval == 0:
		l.add(l.at(path+".sold_out_interval"), "not allowed: the collector has nothing that is sold out")
	case d != nil && slices.Contains([]string{"0", "0s"}, *d):
		settings.SoldOutInterval = settings.Interval
	default:
		settings.SoldOutInterval = l.duration(path+".sold_out_interval", d, min(r.SoldOutInterval, settings.Interval), minSoldOut, settings.Interval)
	}
	if *cmp.Or(l.flags.toggles[r.Name], file.Enabled, new(!l.flags.disableDefaults)) {
		l.Collectors[r.Name] = settings
	}
}

// duration returns a setting of the file, or the default if the setting is missing or faulty.
func (l *loader) duration(path string, set *string, byDefault, least, most time.Duration) time.Duration {
	if set == nil {
		return byDefault
	}
	d, err := model.ParseDuration(*set)
	if err != nil {
		l.add(l.at(path), "%s: must be like 90s, 1h30m or 1d", err)
		return byDefault
	}
	if !checkRange(l, path, d, model.Duration(least), model.Duration(most)) {
		return byDefault
	}
	return time.Duration(d)
}

// checkRateLimit checks that the collectors need at most the requests that a limit allows for long.
func (l *loader) checkRateLimit(path string, limit, most integer, perMinute float64) {
	const margin = 1e-9 // covers the rounding of sums such as three times 4/3
	least := math.Ceil(perMinute-margin) + rentalapi.Burst
	if checkRange(l, path, limit, rentalapi.Burst+1, most) && float64(limit) < least {
		l.add(l.at(path), "%d is too low: must be at least %.0f, %d more than the %.4g requests that the collectors make in a minute",
			limit, least, rentalapi.Burst, perMinute)
	}
}

func (l *loader) checkWatches() {
	checkRange(l, "watches", len(l.Watches), 0, maxWatches)
	for i, w := range l.Watches {
		path := fmt.Sprintf("watches[%d]", i)
		l.addName("watch", w.Name, l.at(path+".name"))
		if reflect.DeepEqual(w, collector.Watch{Name: w.Name}) {
			l.add(l.at(path), "no criterion: at least one must be set, because every plan would match")
		}
		for field, criterion := range reflect.ValueOf(w).Fields() {
			setting := path + "." + field.Tag.Get("yaml")
			switch value := criterion.Interface().(type) {
			case []string:
				if value != nil && len(value) == 0 || slices.ContainsFunc(value, func(v string) bool { return !validName(v) }) {
					l.add(l.at(setting), "invalid list: must have at least one value, and each must be %s", nameRule)
				}
			case *float64:
				if value != nil && !(*value >= 0 && *value <= math.MaxFloat64) {
					l.add(l.at(setting), "%v is out of range: must be at least 0", *value)
				}
			}
		}
		for _, needed := range w.Inputs() {
			if _, isEnabled := l.Collectors[needed]; !isEnabled {
				l.add(l.at(path), "no data: its criteria need the collector %s, which must be enabled", needed)
			}
		}
	}
}
