package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// A decodeFunc stores one node of the file, or adds an error. It never gets an
// alias, which is resolved, nor null, which means not set.
type decodeFunc func(path string, n *yaml.Node)

// maxValues is far above the number of values of any real configuration.
const maxValues = 100_000

// position returns the place of a setting, with the line of the closest parent if the
// file does not contain the setting.
func (l *loader) position(path string) Position {
	for parent := path; ; {
		if line, ok := l.lines[parent]; ok {
			return Position{l.file, line, path}
		}
		end := strings.LastIndexAny(parent, ".[")
		if end < 0 {
			return Position{l.file, 0, path}
		}
		parent = parent[:end]
	}
}

// parse returns the file's only document, or nil if it is empty or invalid.
func (l *loader) parse(content []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var first, second yaml.Node
	err := decoder.Decode(&first)
	if err == nil {
		err = decoder.Decode(&second)
	}
	switch {
	case err == nil:
		l.errs.add(Position{File: l.file, Line: second.Line}, "multiple YAML documents: must be one")
	case !errors.Is(err, io.EOF):
		l.addSyntaxError(err, content)
	case len(first.Content) > 0:
		return first.Content[0]
	}
	return nil
}

// addSyntaxError moves the line from the YAML library's message to the position.
func (l *loader) addSyntaxError(err error, content []byte) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	pos := Position{File: l.file, Line: lineOfError(message, content)}
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		number, detail, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(number); err == nil {
			pos.Line, message = line, detail
		}
	}
	// The only message that repeats the file's text, which may be a secret.
	if strings.HasPrefix(message, "unknown anchor") {
		message = "alias of an unknown anchor"
	}
	l.errs.add(pos, "invalid YAML: %s", message)
}

// lineOfError returns the line of an error whose message has none: the line of an alias
// or of a character that YAML does not allow, else the first.
func lineOfError(message string, content []byte) int {
	at := bytes.IndexFunc(content, func(r rune) bool {
		return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r)
	})
	if rest, ok := strings.CutPrefix(message, "unknown anchor '"); ok {
		anchor, _, _ := strings.Cut(rest, "'")
		at = bytes.Index(content, []byte("*"+anchor))
	}
	return 1 + bytes.Count(content[:max(at, 0)], []byte("\n"))
}

// overBudget counts one value, valid or not, and reports whether to stop.
func (l *loader) overBudget() bool {
	if l.budget == 0 {
		l.errs.add(Position{File: l.file}, "too many values: must be at most %d, with those of an alias counted at each use", maxValues)
	}
	l.budget--
	return l.budget < 0
}

func (l *loader) visit(path string, line int, n *yaml.Node, decode decodeFunc) {
	// An anchor is never on an alias, so one step is enough.
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.ShortTag() == "!!null" {
		return
	}
	l.lines[path] = line
	decode(path, n)
}

// expectKind adds an error unless the node is of the given kind.
func (l *loader) expectKind(kind yaml.Kind, path string, n *yaml.Node) bool {
	if n.Kind == kind {
		return true
	}
	names := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "a single value"}
	l.errs.add(l.position(path), "must be %s, not %s", names[kind], names[n.Kind])
	return false
}

// list decodes each item of a list.
func (l *loader) list(item decodeFunc) decodeFunc {
	return func(path string, n *yaml.Node) {
		if !l.expectKind(yaml.SequenceNode, path, n) {
			return
		}
		for i, child := range n.Content {
			if l.overBudget() {
				return
			}
			itemPath := fmt.Sprintf("%s[%d]", path, i)
			if child.ShortTag() == "!!null" {
				l.errs.add(Position{l.file, child.Line, itemPath}, "must not be empty")
			}
			l.visit(itemPath, child.Line, child, item)
		}
	}
}

// entries decodes a mapping with any keys. The function choose returns nil to
// skip a key.
func (l *loader) entries(choose func(key string, pos Position) decodeFunc) decodeFunc {
	return func(path string, n *yaml.Node) {
		if !l.expectKind(yaml.MappingNode, path, n) {
			return
		}
		lines := map[string]int{}
		for i := 0; i+1 < len(n.Content) && !l.overBudget(); i += 2 {
			key, child := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
				l.errs.add(Position{l.file, key.Line, path}, "invalid key: must be a string, not a merge key (<<), an alias, a list or a mapping")
				continue
			}
			pos := Position{l.file, key.Line, joinPath(path, key.Value)}
			if first, ok := lines[key.Value]; ok {
				l.errs.add(pos, "duplicate key: already set on line %d", first)
				continue
			}
			lines[key.Value] = key.Line
			if message := forbiddenKey(pos.Field); message != "" {
				l.errs.add(pos, "%s", message)
			} else if decode := choose(key.Value, pos); decode != nil {
				l.visit(pos.Field, key.Line, child, decode)
			}
		}
	}
}

// mapping decodes a mapping with known keys.
func (l *loader) mapping(fields map[string]decodeFunc) decodeFunc {
	return l.entries(func(key string, pos Position) decodeFunc {
		decode, ok := fields[key]
		if !ok {
			l.errs.add(pos, "unknown key: must be one of %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		return decode
	})
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

// forbiddenKey returns the message for a key that is known but must not be set.
// These are the keys under which secrets are usually put.
func forbiddenKey(path string) string {
	if strings.HasPrefix(path, "accounts[") && strings.HasSuffix(path, "].token") {
		return "not allowed: must be in a file, set token_file to its path"
	}
	switch strings.ToLower(path) {
	case "api.http.authorization", "api.http.basic_auth", "api.http.bearer_token", "api.http.bearer_token_file",
		"api.http.oauth2", "api.http.http_headers.authorization":
		return "not allowed: the API's credentials must be set as accounts"
	}
	return ""
}

// scalar decodes a single value. The errors of parse must not repeat secrets.
func (l *loader) scalar(parse func(n *yaml.Node) error) decodeFunc {
	return func(path string, n *yaml.Node) {
		if !l.expectKind(yaml.ScalarNode, path, n) {
			return
		}
		if err := parse(n); err != nil {
			l.errs.add(l.position(path), "%s", err)
		}
	}
}

// Errors of values.
const (
	notBoolean = "must be true or false"
	notText    = "must be a text" // a text is any single value, as it is written
	notInteger = "must be an integer"
)

// value decodes a single value into the target.
func (l *loader) value(target any, invalid string) decodeFunc {
	return l.scalar(func(n *yaml.Node) error {
		if n.Decode(target) != nil {
			return errors.New(invalid)
		}
		return nil
	})
}

// number accepts a number with one of the YAML tags.
func (l *loader) number(target any, invalid string, least, most float64, tags ...string) decodeFunc {
	return l.scalar(func(n *yaml.Node) error {
		var value float64
		if !slices.Contains(tags, n.ShortTag()) || n.Decode(&value) != nil || math.IsNaN(value) {
			return errors.New(invalid)
		}
		if value < least || value > most {
			return fmt.Errorf("%s is out of range: must be from %v to %v", n.Value, least, most)
		}
		return n.Decode(target)
	})
}

// duration appends the reason to the message about minValue.
func (l *loader) duration(target *time.Duration, minValue, maxValue time.Duration, reason string) decodeFunc {
	return l.scalar(func(n *yaml.Node) error {
		parsed, err := model.ParseDuration(n.Value)
		if err != nil {
			return errors.New("invalid duration: must be like 30s, 5m, 1h30m or 1d")
		}
		switch value := time.Duration(parsed); {
		case value < minValue:
			return fmt.Errorf("%s is too short: must be at least %s%s", parsed, model.Duration(minValue), reason)
		case value > maxValue:
			return fmt.Errorf("%s is too long: must be at most %s", parsed, model.Duration(maxValue))
		}
		*target = time.Duration(parsed)
		return nil
	})
}
