package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"
)

// setBaseURL repeats no part of the value: it may contain a password.
func (l *loader) setBaseURL(pos Position, value string) {
	if l.flags.Demo {
		l.errs.add(pos, demoConflict, "API")
		return
	}
	u, err := url.Parse(value)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		l.errs.add(pos, "invalid URL: must be http or https, like https://rental.example/api/v1")
		return
	}
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16); err != nil || port == 0 {
		l.errs.add(pos, "invalid port: must be from 1 to 65535")
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

// checkHTTP checks the settings of the HTTP client in combination, and the files of TLS.
func (l *loader) checkHTTP() {
	const path, tls = "api.http", "api.http.tls_config"
	http := &l.config.API.HTTP
	http.SetDirectory(filepath.Dir(l.file))
	schemes := []string{"http", "https", "socks5", "socks5h"} // those that package net/http knows
	if u := http.ProxyURL.URL; u != nil && u.String() != "" && (u.Hostname() == "" || !slices.Contains(schemes, u.Scheme)) {
		l.errs.add(l.position(path+".proxy_url"), "%s", invalidProxy)
	}
	if err := http.Validate(); err != nil && !l.errs.below(path, "") {
		l.errs.add(l.position(path), "%s", err)
	}
	if l.errs.below(tls, "") {
		return
	}
	if _, err := promconfig.NewTLSConfig(&http.TLSConfig); err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = fmt.Errorf("cannot read ca_file, cert_file or key_file: %w", pathErr.Err)
		}
		l.errs.add(l.position(tls), "%s", err)
	}
}

// headerValue matches the path of a header's value, or of a file that contains one.
var headerValue = regexp.MustCompile(`(?s)^api\.http\.(?:proxy_connect_header\..*|http_headers\..*\.(?:values|secrets|(files)))\[\d+\]$`)

// checkHeader reports a value that package net/http would refuse to send. A file is read
// again for each connection.
func (l *loader) checkHeader(pos Position, value string) {
	match := headerValue.FindStringSubmatch(pos.Field)
	if match == nil {
		return
	}
	if match[1] != "" {
		content, err := (&file{path: promconfig.JoinDir(filepath.Dir(l.file), value), limit: maxFile}).read()
		if err != nil {
			l.errs.add(pos, "cannot read: %s", err)
			return
		}
		value = strings.TrimSpace(string(content))
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		l.errs.add(pos, "invalid header value: must not contain line breaks or control characters")
	}
}

// checkAPI checks the base URL in combination with accounts and proxy.
func (l *loader) checkAPI() {
	base := l.config.API.BaseURL
	if base == nil {
		if !l.flags.Demo && !l.errs.has("api", "api.base_url", l.flags.baseURL.position().Field) {
			l.errs.add(l.position("api.base_url"), "missing: must be set here or with %s", l.flags.baseURL.flag)
		}
		return
	}
	if base.Scheme != "http" || len(l.config.Accounts) == 0 {
		return
	}
	address, err := netip.ParseAddr(base.Hostname())
	if !strings.EqualFold(base.Hostname(), "localhost") && (err != nil || !address.IsLoopback()) {
		l.errs.add(l.baseURLPosition, "plain HTTP not allowed with accounts: must be https or a loopback address, because tokens would be sent unencrypted")
	}
	if proxy := l.config.API.HTTP.ProxyURL.URL; proxy != nil && proxy.String() != "" {
		l.errs.add(l.position("api.http.proxy_url"), "proxy not allowed with accounts and plain HTTP: base_url must be https, because the proxy would see the tokens")
	}
}
