package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
)

// addFlagAccount adds the account of a token that is set without a file. An empty variable
// is an error: it is usually one that should have been set elsewhere.
func (l *loader) addFlagAccount(lookup func(string) (string, bool)) {
	file := &l.flags.tokenFile
	token, isSet := lookup(tokenEnvar)
	_, fileIsSet := lookup(file.envar)
	switch {
	case fileIsSet && !file.isSet():
		l.add(file.envar, "empty: must be the path of a file that contains the token")
	case isSet && file.isSet():
		l.add(tokenEnvar, "conflicts with %s: only one of the two may be set", file.place())
	case isSet:
		l.addAccount(Account{Name: "default", Token: promconfig.Secret(token)}, tokenEnvar, tokenEnvar)
	case file.isSet():
		l.addAccount(Account{Name: "default", TokenFile: file.value}, file.place(), file.place())
	}
}

// checkAccounts adds the accounts of the file.
func (l *loader) checkAccounts() {
	for i, a := range l.file.Accounts {
		place := l.at(fmt.Sprintf("accounts[%d]", i))
		a.TokenFile = l.join(a.TokenFile)
		l.addAccount(a, place+".name", place+".token_file")
	}
	for i, pattern := range l.file.AccountFiles {
		l.addAccountFiles(fmt.Sprintf("account_files[%d]", i), l.join(pattern))
	}
	l.checkEncryption()
}

// addAccountFiles adds an account for each file that matches a pattern. A pattern that
// matches none is no error, because a Secret may be empty.
func (l *loader) addAccountFiles(setting, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || pattern == "" {
		l.add(l.at(setting), "invalid pattern: must be like /run/secrets/rental/*")
		return
	}
	if len(files) == 0 { // Glob ignores that a directory cannot be read
		if _, err := os.ReadDir(filepath.Dir(pattern)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.add(l.at(setting), "%s", errors.Unwrap(err))
		}
	}
	before := len(l.config.Accounts)
	for _, file := range files {
		base := filepath.Base(file)
		info, err := os.Stat(file)
		if strings.HasPrefix(base, ".") || err == nil && info.IsDir() { // Kubernetes keeps a Secret in ..data
			continue
		}
		place := l.at(setting) + ": " + file
		l.addAccount(Account{Name: strings.TrimSuffix(base, filepath.Ext(base)), TokenFile: file}, place, place)
	}
	if len(l.config.Accounts) == before {
		l.config.Notes = append(l.config.Notes, l.at(setting)+": no file matches")
	}
}

// addAccount checks that the name is valid and unique, and that the token can be read.
func (l *loader) addAccount(a Account, namePlace, tokenPlace string) {
	l.addName("account", a.Name, namePlace)
	if _, err := a.ReadToken(); err != nil {
		l.add(tokenPlace, "%s", err)
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
		l.add(place, "invalid name: must be %s", nameRule)
	case ok:
		l.add(place, "duplicate name %q: must be unique, already used by %s", name, first)
	default:
		l.used[key] = place
	}
}

const (
	maxName  = 256 // bytes
	nameRule = "at most 256 bytes of UTF-8, and not blank"
)

func validName(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && strings.TrimSpace(name) != ""
}
