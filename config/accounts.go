package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
)

// addFlagAccount adds the account of a token that is set without a file. An empty variable
// is an error: it is usually one that should have been set elsewhere.
func (l *loader) addFlagAccount(lookup func(string) (string, bool)) {
	var places []string
	account := Account{Name: "default", TokenFile: l.flags.tokenFile.value}
	if token, isSet := lookup(tokenEnvar); isSet {
		account.Token = promconfig.Secret(token)
		places = append(places, tokenEnvar)
	}
	if _, isSet := lookup(l.flags.tokenFile.envar); isSet || l.flags.tokenFile.isSet() {
		places = append(places, l.flags.tokenFile.place())
	}
	switch {
	case len(places) == 0:
	case l.flags.Demo:
		for _, place := range places {
			l.add(place, demoConflict, "account")
		}
	case len(places) > 1:
		l.add(places[0], "conflicts with %s: only one of the two may be set", places[1])
	case account.Token == "" && account.TokenFile == "":
		l.add(places[0], "empty: must be set to a value, or not at all")
	default:
		l.addAccount(account, places[0], places[0])
	}
}

// checkAccounts adds the accounts of the file.
func (l *loader) checkAccounts() {
	if l.flags.Demo {
		if len(l.file.Accounts)+len(l.file.AccountFiles) > 0 {
			l.add(l.at("accounts"), demoConflict, "account")
		}
		return
	}
	for i, a := range l.file.Accounts {
		place := l.at(fmt.Sprintf("accounts[%d]", i))
		if a.TokenFile == "" {
			l.add(place+".token_file", "missing: must be the path of a file that contains the token")
			l.addName("account", a.Name, place+".name")
			continue
		}
		path := a.TokenFile
		a.TokenFile = l.join(path)
		l.addAccount(a, place+".name", place+".token_file"+shown(path))
	}
	for i, pattern := range l.file.AccountFiles {
		l.addAccountFiles(fmt.Sprintf("account_files[%d]", i), pattern)
	}
	l.checkEncryption()
}

// shown returns a path with a colon before it, or nothing if the path is relative: then it
// could be a token.
func shown(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	return ": " + path
}

// addAccountFiles adds an account for each file that matches a pattern. A pattern that
// matches none is no error, because a Secret may be empty, unless not even the directory is
// there.
func (l *loader) addAccountFiles(setting, pattern string) {
	place, path := l.at(setting), l.join(pattern)
	files, err := filepath.Glob(path)
	if err != nil {
		l.add(place, "invalid pattern: must be like /run/secrets/rental/*")
		return
	}
	if directories, _ := filepath.Glob(filepath.Dir(path)); len(directories) == 0 {
		l.add(place+shown(pattern), "no such directory")
		return
	}
	matched := false
	for _, file := range files {
		base := filepath.Base(file)
		info, err := os.Stat(file)
		if strings.HasPrefix(base, ".") || err == nil && info.IsDir() { // Kubernetes keeps a Secret in ..data
			continue
		}
		matched = true
		account := Account{Name: strings.TrimSuffix(base, filepath.Ext(base)), TokenFile: file}
		l.addAccount(account, place+": "+file, place+": "+file)
	}
	if !matched {
		l.config.Unmatched = append(l.config.Unmatched, setting)
	}
}

// addAccount checks that name and token are valid and unique.
func (l *loader) addAccount(a Account, namePlace, tokenPlace string) {
	l.addName("account", a.Name, namePlace)
	token, err := a.TokenReader()()
	key := [2]string{"token", token}
	switch first, ok := l.used[key]; {
	case err != nil:
		l.add(tokenPlace, "%s", err)
	case ok:
		l.add(tokenPlace, "duplicate token: must differ from that of %s, because the rate limit applies to each token", first)
	default:
		l.used[key] = tokenPlace
	}
	l.config.Accounts = append(l.config.Accounts, a)
}

// addName checks that a name is valid, and in use for nothing else of the kind.
func (l *loader) addName(kind, name, place string) {
	key := [2]string{kind, name}
	switch first, ok := l.used[key]; {
	case name == "":
		l.add(place, "missing: must be a name")
	case !validName(name):
		l.add(place, "invalid name: %s", nameRule)
	case ok:
		l.add(place, "duplicate name %q: must be unique, already used by %s", name, first)
	default:
		l.used[key] = place
	}
}

const (
	maxName  = 256 // bytes
	nameRule = "must be at most 256 bytes of UTF-8, not blank and without control characters"
)

func validName(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) != "" && !strings.ContainsFunc(name, unicode.IsControl)
}
