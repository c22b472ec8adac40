package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
)

const errorsFile = "testdata/errors.txt"

// errorCase is a section of errorsFile without its errors.
type errorCase string

// readErrorCases returns the sections of errorsFile. The first is a comment.
func readErrorCases(t testing.TB) []errorCase {
	t.Helper()
	content, err := os.ReadFile(errorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var cases []errorCase
	input := regexp.MustCompile(`(?m)^=> .*\n`).ReplaceAllString(string(content), "")
	for section := range strings.SplitSeq(input, "\n-- ") {
		cases = append(cases, errorCase(section))
	}
	return cases
}

// parts returns the command line and the file of the case.
func (c errorCase) parts() (commandLine, file string) {
	_, file, _ = strings.Cut(string(c), " --\n")
	if args, ok := strings.CutPrefix(file, "$"); ok {
		commandLine, file, _ = strings.Cut(args, "\n")
		return commandLine, file
	}
	return "--config.file=rental.yml", file
}

// load loads the case's command line and file.
func (c errorCase) load(t *testing.T) error {
	t.Helper()
	commandLine, file := c.parts()
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
	simtest.WriteFile(t, "rental.yml", file)
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
	got := string(cases[0])
	for _, c := range cases[1:] {
		err := c.load(t)
		if err == nil {
			t.Fatalf("%s: got no error", c)
		}
		got += "\n-- " + string(c) + regexp.MustCompile(`(?m)^`).ReplaceAllString(err.Error(), "=> ") + "\n"
	}
	simtest.Golden(t, path, got)
}

// FuzzLoad asserts that no file causes a panic or an error other than FieldErrors.
func FuzzLoad(f *testing.F) {
	for _, c := range readErrorCases(f)[1:] {
		_, file := c.parts()
		f.Add([]byte(file))
	}
	full, err := os.ReadFile("testdata/full.yml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	name := filepath.Join(f.TempDir(), "rental.yml")
	f.Fuzz(func(t *testing.T, content []byte) {
		simtest.WriteFile(t, name, string(content))
		config, err := parseFlags(t, nil, "--config.file="+name).Load(os.Getenv)
		var errs FieldErrors
		if (err == nil) == (config == nil) || err != nil && (!errors.As(err, &errs) || len(errs) == 0) {
			t.Errorf("got %v and %T", config, err)
		}
	})
}
