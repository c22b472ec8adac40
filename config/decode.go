package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"
)

// maxValues is far above the number of values of any real configuration.
const maxValues = 100_000

// position returns the place of a setting, with the line of the closest parent if the
// file does not contain the setting.
func (l *loader) position(path string) Position {
	line := 0
	for end := len(path); line == 0 && end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		line = l.lines[path[:end]]
	}
	return Position{l.file, line, path}
}

var syntaxError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)`)

// addSyntaxError moves the line from the YAML library's message to the position. A message
// without one is about an alias, or about a character that YAML does not allow.
func (l *loader) addSyntaxError(err error, content []byte) {
	match := syntaxError.FindStringSubmatch(err.Error())
	message := match[2]
	at := bytes.IndexFunc(content, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r)
	})
	// The only message that repeats the file's text, which may be a secret.
	if rest, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		anchor, _, _ := strings.Cut(rest, "'")
		at = bytes.Index(content, []byte("*"+anchor))
		message = "alias of an unknown anchor"
	}
	line, err := strconv.Atoi(match[1])
	if err != nil {
		line = 1 + bytes.Count(content[:max(at, 0)], []byte("\n"))
	}
	l.errs.add(Position{File: l.file, Line: line}, "invalid YAML: %s", message)
}

// decode stores a node in v, or adds errors. Null means not set, and leaves v as it is.
func (l *loader) decode(pos Position, n *yaml.Node, v reflect.Value) {
	// An anchor is never on an alias, so one step is enough.
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.ShortTag() == "!!null" || l.budget < 0 {
		return
	}
	if l.budget -= len(n.Content); l.budget < 0 {
		l.errs.add(Position{File: l.file}, "too many values: must be at most %d, with those of an alias counted at each use", maxValues)
		return
	}
	l.lines[pos.Field] = pos.Line
	if v.Kind() == reflect.Pointer && v.Type() != reflect.TypeFor[*url.URL]() {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if headers, ok := v.Addr().Interface().(*promconfig.Headers); ok {
		v = reflect.ValueOf(&headers.Headers).Elem()
	}
	kind, decode := yaml.ScalarNode, l.scalar
	switch {
	case v.Type() == reflect.TypeFor[promconfig.URL]():
	case v.Kind() == reflect.Slice:
		kind, decode = yaml.SequenceNode, l.list
	case v.Kind() == reflect.Struct, v.Kind() == reflect.Map:
		kind, decode = yaml.MappingNode, l.mapping
	}
	if n.Kind != kind {
		names := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
		l.errs.add(pos, "must be %s, not %s", names[kind], names[n.Kind])
		return
	}
	decode(pos, n, v)
}

// list decodes a list. An item with an error has its zero value.
func (l *loader) list(pos Position, n *yaml.Node, v reflect.Value) {
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		itemPos := Position{l.file, item.Line, fmt.Sprintf("%s[%d]", pos.Field, i)}
		if item.ShortTag() == "!!null" {
			l.errs.add(itemPos, "must not be empty")
		}
		l.decode(itemPos, item, v.Index(i))
	}
}

// mapping decodes a mapping into a struct or a map. A map that is not empty allows only the
// keys that it has.
func (l *loader) mapping(parent Position, n *yaml.Node, v reflect.Value) {
	known := fieldsOf(v)
	anyKey := v.Kind() == reflect.Map && len(known) == 0
	if anyKey {
		v.Set(reflect.MakeMap(v.Type()))
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, child := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			l.errs.add(Position{l.file, key.Line, parent.Field}, "invalid key: must be a string, not a merge key (<<), an alias, a list or a mapping")
			continue
		}
		pos := Position{l.file, key.Line, joinPath(parent.Field, key.Value)}
		first, duplicate := lines[key.Value]
		lines[key.Value] = key.Line
		target, ok := known[key.Value]
		if anyKey {
			target = reflect.New(v.Type().Elem()).Elem()
		}
		switch message := forbiddenKey(parent.Field, key.Value); {
		case duplicate:
			l.errs.add(pos, "duplicate key: already set on line %d", first)
		case message != "":
			l.errs.add(pos, "%s", message)
		case !ok && !anyKey:
			maps.DeleteFunc(known, func(key string, _ reflect.Value) bool { return forbiddenKey(parent.Field, key) != "" })
			l.errs.add(pos, "unknown key: must be one of %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		default:
			l.decode(pos, child, target)
			if v.Kind() == reflect.Map {
				v.SetMapIndex(reflect.ValueOf(key.Value), target)
			}
		}
	}
}

// fieldsOf returns the fields of a struct by their keys, with those of inlined structs, or
// copies of a map's values.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	if v.Kind() == reflect.Map {
		for key, value := range v.Seq2() {
			fields[key.String()] = reflect.New(value.Type()).Elem()
			fields[key.String()].Set(value)
		}
		return fields
	}
	for field, value := range v.Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			maps.Copy(fields, fieldsOf(value))
		case key != "":
			fields[key] = value
		}
	}
	return fields
}

// joinPath shortens long keys, which would make an error unreadable.
func joinPath(path, key string) string {
	const maxKey = 64
	if len(key) > maxKey {
		key = strings.ToValidUTF8(key[:maxKey], "") + "..."
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// forbiddenKey returns the message for a key that is known but must not be set, such as those
// under which secrets are usually put, and for one that is not the name of a header.
func forbiddenKey(parent, key string) string {
	if strings.HasPrefix(parent, "accounts[") && key == "token" {
		return "not allowed: must be in a file, set token_file to its path"
	}
	const headers = "api.http.http_headers"
	switch strings.ToLower(joinPath(parent, key)) {
	case "api.http.authorization", "api.http.basic_auth", "api.http.bearer_token", "api.http.bearer_token_file",
		"api.http.oauth2", headers + ".authorization":
		return "not allowed: the API's credentials must be set as accounts"
	}
	if (parent == headers || parent == "api.http.proxy_connect_header") && !httpguts.ValidHeaderFieldName(key) {
		return "invalid header name: must be letters, digits and hyphens, like X-Tenant"
	}
	if _, reserved := promconfig.ReservedHeaders[http.CanonicalHeaderKey(key)]; reserved && parent == headers {
		return "not allowed: this header is reserved"
	}
	return ""
}

const invalidProxy = "invalid URL: must be http, https, socks5 or socks5h, like http://proxy.example:3128"

// invalidValues are the errors of values by their types. They repeat no value, because it
// may be secret.
var invalidValues = map[reflect.Type]string{
	reflect.TypeFor[bool]():                  "must be true or false",
	reflect.TypeFor[string]():                "must be a text", // any single value, as it is written
	reflect.TypeFor[int]():                   "must be an integer",
	reflect.TypeFor[float64]():               "must be a number",
	reflect.TypeFor[time.Duration]():         "invalid duration: must be like 30s, 5m, 1h30m or 1d",
	reflect.TypeFor[promconfig.URL]():        invalidProxy,
	reflect.TypeFor[promconfig.TLSVersion](): "invalid TLS version: must be one of " + strings.Join(slices.Sorted(maps.Keys(promconfig.TLSVersions)), ", "),
}

// scalar decodes a single value.
func (l *loader) scalar(pos Position, n *yaml.Node, v reflect.Value) {
	var err error
	switch target := v.Addr().Interface().(type) {
	case **url.URL:
		l.setBaseURL(pos, n.Value)
	case *time.Duration:
		var d model.Duration
		d, err = model.ParseDuration(n.Value)
		*target = time.Duration(d)
	default:
		err = n.Decode(target)
	}
	tag := n.ShortTag()
	quoted := v.Kind() == reflect.Int && tag != "!!int" || v.Kind() == reflect.Float64 && tag != "!!int" && tag != "!!float"
	if err != nil || quoted {
		l.errs.add(pos, "%s", cmp.Or(invalidValues[v.Type()], "invalid value"))
		return
	}
	l.checkHeader(pos, n.Value)
}
