package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

// loadDefaultAccount adds the account of a token that is set without a file.
func (l *loader) loadDefaultAccount(getenv func(string) string) {
	envar, file := Position{Field: tokenEnvar}, &l.flags.tokenFile
	secret := getenv(tokenEnvar)
	switch {
	case l.flags.demo:
		if secret != "" {
			l.conflictsWithDemo(envar, "account")
		}
		if file.isSet() {
			l.conflictsWithDemo(file.position(), "account")
		}
	case secret != "" && file.isSet():
		l.errs.add(envar, "conflicts with %s: only one of the two may be set", file.position().Field)
	case secret != "":
		token, err := checkToken(secret)
		l.addAccount(Account{Name: "default", Token: promconfig.Secret(token)}, envar, envar, token, err)
	case file.isSet():
		token, err := readToken(file.value)
		l.addAccount(Account{Name: "default", TokenFile: file.value}, file.position(), file.position(), token, err)
	}
}

func (l *loader) accounts() decodeFunc {
	list := l.list(l.account)
	return func(path string, n *yaml.Node) {
		if l.flags.demo && len(n.Content) > 0 {
			l.conflictsWithDemo(l.position(path), "account")
			return
		}
		list(path, n)
	}
}

func (l *loader) account(path string, n *yaml.Node) {
	var a Account
	errs, ok := l.named(path, n, &a.Name, map[string]decodeFunc{"name": l.text(&a.Name), "token_file": l.text(&a.TokenFile)})
	if !ok {
		return
	}
	tokenPos := l.position(path + ".token_file")
	var token string
	var err error
	switch {
	case a.TokenFile != "":
		a.TokenFile = promconfig.JoinDir(filepath.Dir(l.file), a.TokenFile)
		token, err = readToken(a.TokenFile)
	case !errs.has(tokenPos.Field, path+".token"):
		err = errors.New("missing: must be the path of a file that contains the token")
	}
	l.addAccount(a, l.position(path+".name"), tokenPos, token, err)
}

// named decodes a mapping whose name must be set. It returns the errors of its fields,
// and false if it is no mapping.
func (l *loader) named(path string, n *yaml.Node, name *string, fields map[string]decodeFunc) (FieldErrors, bool) {
	if !l.expectKind(yaml.MappingNode, path, n) {
		return nil, false
	}
	before := len(l.errs)
	l.mapping(fields)(path, n)
	errs := slices.Clone(l.errs[before:])
	if pos := l.position(path + ".name"); *name == "" && !errs.has(pos.Field) {
		l.errs.add(pos, "missing: must be a name")
	}
	return errs, true
}

// addAccount also checks that name and token are valid and unique. An empty
// name or token already has an error; err is that of reading the token.
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
	if name == "" {
		return
	}
	if !validName(name) {
		l.errs.add(pos, "invalid name: must be at most %d bytes of UTF-8, not blank and without control characters", maxName)
	} else if first, ok := used[name]; ok {
		l.errs.add(pos, "duplicate name %q: must be unique, already used by %s", name, first)
	} else {
		used[name] = strings.TrimSuffix(pos.Field, ".name")
	}
}

func validName(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, unicode.IsControl)
}
