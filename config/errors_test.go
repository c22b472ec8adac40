package config

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const errorsFile = "testdata/errors.txt"

// errorCase is a section of errorsFile.
type errorCase struct {
	name string
	// environment and arguments as they are written after $, if any.
	commandLine, file, errors string
}

// readErrorCases returns the comment at the start of errorsFile and its cases.
func readErrorCases(t testing.TB) (comment string, cases []errorCase) {
	t.Helper()
	content, err := os.ReadFile(errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	comment, rest, _ := strings.Cut(string(content), "\n-- ")
	for section := range strings.SplitSeq(rest, "\n-- ") {
		var c errorCase
		var body string
		c.name, body, _ = strings.Cut(section, " --\n")
		if args, ok := strings.CutPrefix(body, "$"); ok {
			c.commandLine, body, _ = strings.Cut(args, "\n")
		} else {
			c.commandLine = " --config.file=rental.yml"
		}
		for line := range strings.Lines(body) {
			if message, ok := strings.CutPrefix(line, "=> "); ok {
				c.errors += message
			} else {
				c.file += line
			}
		}
		c.file = strings.TrimRight(c.file, "\n") + "\n"
		cases = append(cases, c)
	}
	return comment, cases
}

// String returns the case as it is written in errorsFile.
func (c errorCase) String() string {
	var b strings.Builder
	b.WriteString("-- " + c.name + " --\n")
	if c.commandLine != " --config.file=rental.yml" {
		b.WriteString("$" + c.commandLine + "\n")
	}
	if c.file != "\n" {
		b.WriteString(c.file)
	}
	for line := range strings.Lines(c.errors) {
		b.WriteString("=> " + line)
	}
	return b.String()
}

// load loads the case's command line and file.
func (c errorCase) load(t *testing.T) (*Config, error) {
	t.Helper()
	env := map[string]string{}
	var args []string
	for word := range strings.FieldsSeq(c.commandLine) {
		name, value, _ := strings.Cut(word, "=")
		if strings.HasPrefix(word, "--") {
			args = append(args, word)
		} else if unquoted, err := strconv.Unquote(`"` + value + `"`); err != nil {
			t.Fatal(err)
		} else {
			env[name] = unquoted
		}
	}
	writeFile(t, c.file)
	return load(t, parseFlags(t, env, args...))
}

// TestErrors compares the errors of each case in errorsFile.
func TestErrors(t *testing.T) {
	path, err := filepath.Abs(errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	content, cases := readErrorCases(t)
	enterConfigDir(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.load(t)
			if err == nil {
				t.Fatal("got no error")
			}
			if *update {
				cases[i].errors = err.Error() + "\n"
				return
			}
			assertErrors(t, err, strings.TrimSuffix(c.errors, "\n"))
		})
	}
	if *update {
		for _, c := range cases {
			content += "\n" + c.String()
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
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
	_, cases := readErrorCases(f)
	for _, c := range cases {
		f.Add([]byte(c.file))
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
