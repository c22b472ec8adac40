package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const errorsFile = "testdata/errors.txt"

// errorCase is a section of errorsFile: its lines without those of errors, and these.
type errorCase struct{ text, errors string }

// readErrorCases returns the sections of errorsFile. The first is a comment.
func readErrorCases(t testing.TB) []errorCase {
	t.Helper()
	content, err := os.ReadFile(errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases []errorCase
	for section := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n\n-- ") {
		var c errorCase
		for line := range strings.SplitSeq(section, "\n") {
			if message, ok := strings.CutPrefix(line, "=> "); ok {
				c.errors += message + "\n"
			} else {
				c.text += line + "\n"
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// parts returns the name of the case, its command line, and its file.
func (c errorCase) parts() (name, commandLine, file string) {
	name, file, _ = strings.Cut(c.text, " --\n")
	if args, ok := strings.CutPrefix(file, "$"); ok {
		commandLine, file, _ = strings.Cut(args, "\n")
		return name, commandLine, file
	}
	return name, "--config.file=rental.yml", file
}

// load loads the case's command line and file.
func (c errorCase) load(t *testing.T) error {
	t.Helper()
	_, commandLine, file := c.parts()
	env := map[string]string{}
	var args []string
	for word := range strings.FieldsSeq(commandLine) {
		if strings.HasPrefix(word, "--") {
			args = append(args, word)
			continue
		}
		name, quoted, _ := strings.Cut(word, "=")
		value, err := strconv.Unquote(`"` + quoted + `"`)
		if err != nil {
			t.Fatal(err)
		}
		env[name] = value
	}
	writeFile(t, file)
	_, err := load(t, parseFlags(t, env, args...))
	return err
}

// TestErrors compares the errors of each case in errorsFile.
func TestErrors(t *testing.T) {
	path, err := filepath.Abs(errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	cases := readErrorCases(t)
	enterConfigDir(t)
	for i, c := range cases[1:] {
		name, _, _ := c.parts()
		t.Run(name, func(t *testing.T) {
			err := c.load(t)
			if err == nil {
				t.Fatal("got no error")
			}
			if *update {
				cases[1+i].errors = err.Error() + "\n"
				return
			}
			assertErrors(t, err, strings.TrimSuffix(c.errors, "\n"))
		})
	}
	if !*update {
		return
	}
	var sections []string
	for _, c := range cases {
		sections = append(sections, c.text+regexp.MustCompile(`(?m)^.`).ReplaceAllString(c.errors, "=> $0"))
	}
	if err := os.WriteFile(path, []byte(strings.Join(sections, "\n-- ")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSyntaxErrors has what a text file cannot contain.
func TestSyntaxErrors(t *testing.T) {
	enterConfigDir(t)
	for content, want := range map[string]string{
		"collectors: {}\napi: \x01" + secret + "\n": "rental.yml:2: invalid YAML: control characters are not allowed",
		"api: \xff\xfe " + secret + "\n":            "rental.yml:1: invalid YAML: invalid leading UTF-8 octet",
	} {
		_, err := loadFile(t, content)
		assertErrors(t, err, want)
	}
}

// FuzzLoad asserts that no file causes a panic or an error other than FieldErrors.
func FuzzLoad(f *testing.F) {
	for _, c := range readErrorCases(f)[1:] {
		_, _, file := c.parts()
		f.Add([]byte(file))
	}
	full, err := os.ReadFile("testdata/full.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	name := filepath.Join(f.TempDir(), "rental.yml")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := parseFlags(t, nil, "--config.file="+name).Load(os.Getenv)
		var errs FieldErrors
		if (err == nil) == (config == nil) || err != nil && (!errors.As(err, &errs) || len(errs) == 0) {
			t.Errorf("got %v and %T", config, err)
		}
	})
}
