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
)

// checkAPI checks how requests are sent. The flag of the base URL has precedence over the
// file. No message repeats a part of the URL: it may contain a password.
func (l *loader) checkAPI() {
	checkRange(l, "api.timeout", l.API.Timeout, time.Millisecond, 5*time.Minute)
	l.checkHTTP()
	place, address, flag := l.at("api.base_url"), l.API.Address, &l.flags.baseURL
	if flag.isSet() {
		place, address = flag.place(), flag.value
	}
	if l.flags.Demo && address == "" {
		return
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	switch {
	case address == "":
		l.add(place, "missing: must be set here or with %s", flag.flag)
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		l.add(place, "invalid URL: must be http or https, like https://rental.example/api/v1")
	case u.User != nil:
		l.add(place, "user information not allowed: tokens must be set as accounts")
	case !strings.HasSuffix(u.Path, "/api/v1") || strings.ContainsAny(address, "?#"):
		l.add(place, "invalid path: must end in /api/v1, without query or fragment")
	case u.Scheme == "http" && len(l.Accounts) > 0 && !l.isLocal(u):
		l.add(place, "plain HTTP not allowed with accounts: must be https, or a loopback address without a proxy, because tokens would be sent unencrypted")
	}
	l.API.BaseURL = u
}

// isLocal returns whether requests to a URL do not leave this machine.
func (l *loader) isLocal(u *url.URL) bool {
	address, err := netip.ParseAddr(u.Hostname())
	isLoopback := strings.EqualFold(u.Hostname(), "localhost") || err == nil && address.IsLoopback()
	proxy := l.API.HTTP.ProxyURL.URL
	return isLoopback && (proxy == nil || proxy.String() == "")
}

// checkHTTP checks the settings of the HTTP client with the library that uses them, and makes
// their paths relative to the file.
func (l *loader) checkHTTP() {
	settings, place := &l.API.HTTP, l.at("api.http")
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
	headers := cmp.Or(settings.HTTPHeaders, &promconfig.Headers{}).Headers
	for _, name := range slices.Sorted(maps.Keys(headers)) { // the library checks them when a request is sent
		place := fmt.Sprintf("%s: header %q", place, name)
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
