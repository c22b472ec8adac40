package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"

	"server_rental_exporter/collector"
)

const (
	maxTimeout = Duration(5 * time.Minute)

	// The provider requires fewer than 60 public requests per minute from one
	// address, and at most 120 with one token.
	maxPublic, maxAccount = 59, 120
)

// setBaseURL repeats no part of the value: it may contain a password.
func (l *loader) setBaseURL(place, value string) {
	u, err := url.Parse(strings.TrimSuffix(value, "/"))
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		l.add(place, "invalid URL: must be http or https, like https://rental.example/api/v1")
	case u.User != nil:
		l.add(place, "user information not allowed: tokens must be set as accounts")
	case !strings.HasSuffix(u.Path, "/api/v1") || strings.ContainsAny(value, "?#"):
		l.add(place, "invalid path: must end in /api/v1, without query or fragment")
	default:
		l.config.API.BaseURL, l.baseURLPlace = u, place
	}
}

// checkAPI checks how requests are sent. The flag of the base URL has precedence over the file.
func (l *loader) checkAPI() {
	api, flag := &l.file.API, &l.flags.baseURL
	switch {
	case flag.isSet():
		l.setBaseURL(flag.place(), flag.value)
	case api.Address != "":
		l.setBaseURL(l.at("api.base_url"), api.Address)
	case !l.flags.Demo:
		l.add(l.at("api.base_url"), "missing: must be set here or with %s", flag.flag)
	}
	checkRange(l, "api.timeout", api.Timeout, Duration(time.Millisecond), maxTimeout)
	checkRange(l, "api.rate_limit.public", api.RateLimit.Public, collector.Burst+1, maxPublic)
	checkRange(l, "api.rate_limit.account", api.RateLimit.Account, collector.Burst+1, maxAccount)
	l.checkHTTP()
	api.BaseURL, api.Address = l.config.API.BaseURL, ""
	l.config.API = *api
}

// checkHTTP checks the settings of the HTTP client with the library that uses them, and makes
// their paths relative to the file.
func (l *loader) checkHTTP() {
	settings, place := &l.file.API.HTTP, l.at("api.http")
	settings.SetDirectory(filepath.Dir(l.flags.configFile.value))
	err := settings.invalid
	switch {
	case errors.As(err, new(*url.Error)): // it repeats the URL, which may contain a password
		err = errors.New("proxy_url: invalid URL")
	case err == nil && (settings.Authorization != nil || settings.BasicAuth != nil || settings.OAuth2 != nil):
		err = errors.New("credentials not allowed: tokens must be set as accounts")
	case err == nil:
		_, err = promconfig.NewTLSConfig(&settings.TLSConfig)
	}
	if err != nil {
		l.add(place, "%s", err)
	}
	l.checkHeaders()
}

// checkHeaders checks what the library reports only when a request is sent.
func (l *loader) checkHeaders() {
	settings := l.file.API.HTTP
	headers := cmp.Or(settings.HTTPHeaders, &promconfig.Headers{}).Headers
	names := slices.AppendSeq(slices.Collect(maps.Keys(settings.ProxyConnectHeader)), maps.Keys(headers))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		place := l.at(fmt.Sprintf("api.http: header %q", name))
		if !httpguts.ValidHeaderFieldName(name) {
			l.add(place, "invalid name: must be letters, digits and characters like - and _")
		}
		for i, file := range headers[name].Files {
			if _, err := readFile(file); err != nil {
				l.add(fmt.Sprintf("%s: files[%d]", place, i), "%s", err)
			}
		}
	}
}

// checkEncryption reports a base URL to which tokens would be sent unencrypted.
func (l *loader) checkEncryption() {
	base := l.config.API.BaseURL
	if base == nil || base.Scheme != "http" || len(l.config.Accounts) == 0 {
		return
	}
	address, err := netip.ParseAddr(base.Hostname())
	isLocal := strings.EqualFold(base.Hostname(), "localhost") || err == nil && address.IsLoopback()
	if proxy := l.config.API.HTTP.ProxyURL.URL; !isLocal || proxy != nil && proxy.String() != "" {
		l.add(l.baseURLPlace, "plain HTTP not allowed with accounts: must be https, or a loopback address without a proxy, because tokens would be sent unencrypted")
	}
}
