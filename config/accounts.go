package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	promconfig "github.com/prometheus/common/config"
)

// checkAccounts adds the accounts of the flags and of account files to those of the file.
func (l *loader) checkAccounts() {
	listed := l.Accounts
	l.Accounts = nil
	const flag = "--api.token-file"
	file := l.flags.tokenFile
	token, isSet := os.LookupEnv(TokenEnvar)
	switch {
	case isSet && file != "":
		l.add(TokenEnvar, "conflicts with %s: only one of the two may be set", flag)
	case isSet:
		l.addAccount(Account{Name: "default", Token: promconfig.Secret(token)}, TokenEnvar, TokenEnvar)
	case file != "":
		l.addAccount(Account{Name: "default", TokenFile: file}, flag, filePlace(flag, file, file))
	}
	for i, a := range listed {
		place, set := l.at(fmt.Sprintf("accounts[%d]", i)), a.TokenFile
		a.TokenFile = l.join(set)
		l.addAccount(a, place+".name", filePlace(place+".token_file", set, a.TokenFile))
	}
	l.addFound(l.searchAll())
}

// filePlace returns a place with the file that is set there. It leaves out what may be a token, pasted
// in place of a path.
func filePlace(place, set, path string) string {
	if _, err := os.Stat(path); err != nil && !filepath.IsAbs(set) {
		return place
	}
	return place + ": " + set
}

// FindAccounts returns a configuration with the accounts whose files are there now; nothing else
// changes. It leaves out a new account with a fault, which is a line of the error. An account that
// was there before stays as it is, as its file may be written right now; so do all if the search
// fails.
func (f *Flags) FindAccounts(c *Config) (*Config, error) {
	l := &loader{flags: f, file: file{Config: *c}, used: map[[2]string]string{}}
	places := l.searchAll()
	if len(l.errs) > 0 {
		return c, errors.Join(l.errs...)
	}
	l.Accounts = nil
	for _, a := range c.Accounts { // first, so that they keep their names
		if place := places[a.TokenFile]; !a.found || place != "" {
			l.used[[2]string{"account", a.Name}] = cmp.Or(place, l.at("accounts"))
			l.Accounts = append(l.Accounts, a)
		}
	}
	l.addFound(places)
	return &l.Config, errors.Join(l.errs...)
}

// searchAll returns the account files, and the pattern that found each.
func (l *loader) searchAll() (places map[string]string) {
	places = map[string]string{}
	for i, pattern := range l.AccountFiles {
		place := l.at(fmt.Sprintf("account_files[%d]", i))
		files, err := search(l.join(pattern))
		if err != nil {
			l.add(place, "%s", err)
		}
		for _, f := range files {
			places[f] = cmp.Or(places[f], place+": "+f)
		}
	}
	return places
}

// addFound adds an account for each file that no account has yet, unless it has a fault.
func (l *loader) addFound(places map[string]string) {
	for _, a := range l.Accounts {
		delete(places, a.TokenFile)
	}
	for _, f := range slices.Sorted(maps.Keys(places)) {
		name := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
		if !l.addAccount(Account{Name: name, TokenFile: f, found: true}, places[f], places[f]) {
			l.Accounts = l.Accounts[:len(l.Accounts)-1]
		}
	}
}

// search returns the files that match a pattern; none is no fault, because a Secret may be empty. Unlike
// filepath.Glob, it returns an error if it cannot look everywhere. It leaves out links to nothing, which
// Kubernetes leaves for a moment, names that begin with a dot, as its ..data, and files of editors.
func search(pattern string) (files []string, err error) {
	files, err = doublestar.FilepathGlob(pattern, doublestar.WithFailOnIOErrors(), doublestar.WithFilesOnly(), doublestar.WithNoHidden())
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		base, _ := doublestar.SplitPattern(filepath.Clean(pattern)) // to which its path is relative
		pathErr.Path = filepath.Join(base, pathErr.Path)
	}
	return slices.DeleteFunc(files, func(path string) bool {
		_, err := os.Stat(path)
		name := filepath.Base(path)
		return errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~")
	}), err
}

// addAccount adds an account, and returns whether its name is valid and unique, and its token can
// be read.
func (l *loader) addAccount(a Account, namePlace, tokenPlace string) bool {
	before := len(l.errs)
	l.addName("account", a.Name, namePlace)
	if _, err := a.ReadToken(); err != nil {
		l.add(tokenPlace, "%s", err)
	}
	l.Accounts = append(l.Accounts, a)
	return len(l.errs) == before
}

// addName checks that a name is valid, and in use for nothing else of the kind.
func (l *loader) addName(kind, name, place string) {
	key := [2]string{kind, name}
	switch first, ok := l.used[key]; {
	case !validName(name):
		l.add(place, "invalid name: must be %s", nameRule)
	case ok:
		l.add(place, "duplicate name %q: must be unique, already used by %s", name, first)
	default:
		l.used[key] = place
	}
}

const nameRule = "1 to 256 bytes of UTF-8, and not blank"

func validName(name string) bool {
	return len(name) <= 256 && utf8.ValidString(name) && strings.TrimSpace(name) != ""
}

// ReadToken returns the token without surrounding white space, if it is a valid header value.
// The error contains neither content nor path; it wraps that of the file system.
func (a Account) ReadToken() (token string, err error) {
	content := []byte(a.Token)
	if a.TokenFile != "" {
		if content, err = readFile(a.TokenFile, maxSecret); err != nil {
			return "", err
		}
	}
	token = string(bytes.TrimSpace(content))
	if token == "" {
		return "", errors.New("missing or empty: must be a token")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("invalid token: must be printable ASCII without spaces, and nothing else")
	}
	return token, nil
}

// readFile returns the content of a regular file of at most so many bytes. A pipe is an error:
// it would block until it has a writer. The error does not contain the path.
func readFile(path string, most int64) (content []byte, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		content, err = io.ReadAll(io.LimitReader(f, most+1)) // a file may grow, and some tell no size
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("too large: must be at most %d bytes", most)
	}
	return content, err
}
