package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

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
			"public":  number(&l.document, &api.RateLimit.Public, 1, maxPublic),
			"account": number(&l.document, &api.RateLimit.Account, 1, maxAccount),
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

// check validates a node against a type of another package and stores nothing.
// That package's own decoder has no paths, ignores unknown keys with this YAML
// library, and its errors repeat values that may be secret.
func (d *document) check(t reflect.Type) decodeFunc {
	switch {
	case t.Kind() == reflect.Pointer:
		return d.check(t.Elem())
	case t.Kind() == reflect.Slice:
		return d.list(d.check(t.Elem()))
	case t.Kind() == reflect.Map:
		item := d.check(t.Elem())
		return d.entries(func(string, Position) decodeFunc { return item })
	case t == reflect.TypeFor[promconfig.Headers]():
		return d.check(reflect.TypeFor[map[string]promconfig.Header]())
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[promconfig.URL]():
		return d.mapping(d.structFields(t))
	}
	invalid := errors.New("invalid value")
	switch t {
	case reflect.TypeFor[bool]():
		invalid = errNotBoolean
	case reflect.TypeFor[promconfig.URL]():
		invalid = errors.New("invalid URL: must be like http://proxy.example:3128")
	case reflect.TypeFor[promconfig.TLSVersion]():
		invalid = fmt.Errorf("invalid TLS version: must be one of %s", strings.Join(slices.Sorted(maps.Keys(promconfig.TLSVersions)), ", "))
	}
	return d.scalar(func(n *yaml.Node) error {
		if n.Decode(reflect.New(t).Interface()) != nil {
			return invalid
		}
		return nil
	})
}

// structFields returns the keys of a struct, with those of inlined structs.
func (d *document) structFields(t reflect.Type) map[string]decodeFunc {
	fields := map[string]decodeFunc{}
	for field := range t.Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			maps.Copy(fields, d.structFields(field.Type))
		case key != "":
			fields[key] = d.check(field.Type)
		}
	}
	return fields
}

// checkHTTPFiles reports a wrong path or header before anything is served. The files are
// read again for each connection.
func (l *loader) checkHTTPFiles(path string, http *promconfig.HTTPClientConfig) {
	if _, err := promconfig.NewTLSConfig(&http.TLSConfig); err != nil {
		if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
			err = fmt.Errorf("cannot read ca_file, cert_file or key_file: %w", pathErr.Err)
		}
		l.errs.add(l.position(path+".tls_config"), "%s", err)
	}
	for _, name := range slices.Sorted(maps.Keys(http.ProxyConnectHeader)) {
		for i, value := range http.ProxyConnectHeader[name] {
			l.checkHeader(fmt.Sprintf("%s[%d]", joinPath(path+".proxy_connect_header", name), i), string(value))
		}
	}
	if http.HTTPHeaders == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(http.HTTPHeaders.Headers)) {
		header, at := http.HTTPHeaders.Headers[name], joinPath(path+".http_headers", name)
		for i, value := range header.Values {
			l.checkHeader(fmt.Sprintf("%s.values[%d]", at, i), value)
		}
		for i, value := range header.Secrets {
			l.checkHeader(fmt.Sprintf("%s.secrets[%d]", at, i), string(value))
		}
		for i, headerFile := range header.Files {
			content, err := (&file{path: headerFile, limit: maxFile}).read()
			at := fmt.Sprintf("%s.files[%d]", at, i)
			if err != nil {
				l.errs.add(l.position(at), "cannot read: %s", err)
				continue
			}
			l.checkHeader(at, strings.TrimSpace(string(content)))
		}
	}
}

// checkHeader reports a value that package net/http would refuse to send.
func (l *loader) checkHeader(path, value string) {
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		l.errs.add(l.position(path), "invalid header value: must not contain line breaks or control characters")
	}
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
