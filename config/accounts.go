package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	promconfig "github.com/prometheus/common/config"
)

// checkAccounts adds the accounts of the flags and of account files to those of the file.
func (l *loader) checkAccounts(lookup func(string) (string, bool)) {
	listed := l.Accounts
	l.Accounts = nil
	l.addFlagAccount(lookup)
	for i, a := range listed {
		place := l.at(fmt.Sprintf("accounts[%d]", i))
		a.TokenFile = l.join(a.TokenFile)
		l.addAccount(a, place+".name", place+".token_file")
	}
	l.listed = len(l.Accounts)
	for i, pattern := range l.AccountFiles {
		l.patterns = append(l.patterns, filePattern{place: l.at(fmt.Sprintf("account_files[%d]", i)), glob: l.join(pattern)})
		for _, f := range l.accountFiles(l.patterns[i]) {
			l.addAccount(f.Account, f.place, f.place)
		}
	}
}

// filePattern is a pattern of account files with its place in the configuration.
type filePattern struct{ place, glob string }

// FindAccounts returns the configuration with the accounts whose files are there now; nothing else
// changes. It leaves out a new account with a fault, which is a line of the error. An account that
// was there before stays as it is, as its file may be written right now; so do all if a directory
// cannot be read.
func (c *Config) FindAccounts() (*Config, error) {
	l := &loader{file: file{Config: *c}, used: map[[2]string]string{}}
	l.Accounts, l.Notes = nil, nil
	known := map[Account]bool{}
	for i, a := range c.Accounts {
		known[a] = true
		if i < c.listed {
			l.keep(a, "accounts")
		}
	}
	var added []accountFile
	for _, p := range c.patterns {
		for _, f := range l.accountFiles(p) {
			if known[f.Account] {
				l.keep(f.Account, f.place)
			} else {
				added = append(added, f)
			}
		}
	}
	if l.unreadable {
		return c, errors.Join(l.errs...)
	}
	for _, f := range added { // after those that have their names already
		if !l.addAccount(f.Account, f.place, f.place) {
			l.Accounts = l.Accounts[:len(l.Accounts)-1]
		}
	}
	return &l.Config, errors.Join(l.errs...)
}

// keep adds an account that was checked before.
func (l *loader) keep(a Account, place string) {
	l.used[[2]string{"account", a.Name}] = place
	l.Accounts = append(l.Accounts, a)
}

// addFlagAccount adds the account of the flags and variables. An empty variable is a fault: it
// probably should have been set elsewhere.
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

// accountFile is a file that matches a pattern, with its place in the configuration.
type accountFile struct {
	Account
	place string
}

// accountFiles returns an account for each file that matches a pattern. Two things are no faults: a
// pattern without a match, as a Secret may be empty, and a link to nothing, which Kubernetes leaves
// for a moment.
func (l *loader) accountFiles(p filePattern) (found []accountFile) {
	files, err := filepath.Glob(p.glob)
	if err != nil || p.glob == "" {
		l.add(p.place, "invalid pattern: must be like /run/secrets/rental/*")
		return nil
	}
	if len(files) == 0 { // Glob ignores that a directory cannot be read
		if _, err := os.ReadDir(filepath.Dir(p.glob)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.add(p.place, "%s", errors.Unwrap(err))
			l.unreadable = true
		}
	}
	for _, file := range files {
		base := filepath.Base(file)
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(base, ".") || err == nil && info.IsDir() { // Kubernetes keeps a Secret in ..data
			continue
		}
		name := strings.TrimSuffix(base, filepath.Ext(base))
		found = append(found, accountFile{Account{Name: name, TokenFile: file}, p.place + ": " + file})
	}
	if len(found) == 0 {
		l.Notes = append(l.Notes, p.place+": no file matches")
	}
	return found
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
func (a Account) ReadToken() (string, error) {
	content := []byte(a.Token)
	if a.TokenFile != "" {
		var err error
		if content, err = readFile(a.TokenFile, maxSecret); err != nil {
			return "", err
		}
	}
	token := string(bytes.TrimSpace(content))
	if token == "" {
		return "", errors.New("missing or empty: must be a token")
	}
	if strings.ContainsAny(token[:1]+token[len(token)-1:], "\"'") {
		return "", errors.New("invalid token: must be without quotes, which docker --env-file keeps")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("invalid token: must be printable ASCII without spaces, and nothing else")
	}
	return token, nil
}

// maxSecret bounds a file that is read at each request, in bytes.
const maxSecret = 64 << 10

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
