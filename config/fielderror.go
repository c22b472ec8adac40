package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Position is the place of a setting.
type Position struct {
	File  string // path of the configuration file, empty for flags and environment
	Line  int    // from 1; 0 if it is not known
	Field string // path such as accounts[1].token_file, flag or variable; empty for the whole file
}

// FieldError is an invalid setting. The message names the problem and what is allowed.
type FieldError struct {
	Position
	Message string
}

// control is what a quoted key or a file's name may contain, such as a line break.
var control = regexp.MustCompile(`\p{Cc}`)

// Error returns one line, such as "rental.yml:12: api.timeout: message".
func (e FieldError) Error() string {
	place := e.File
	if e.Line > 0 {
		place += ":" + strconv.Itoa(e.Line)
	}
	parts := slices.DeleteFunc([]string{place, e.Field, e.Message}, func(part string) bool { return part == "" })
	return control.ReplaceAllString(strings.Join(parts, ": "), " ")
}

// fieldErrors are all errors of a configuration.
type fieldErrors []FieldError

// join returns one error with a line for each: those of flags and environment first, then
// those of the file by line.
func (e fieldErrors) join() error {
	slices.SortStableFunc(e, func(a, b FieldError) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Field, b.Field))
	})
	all := make([]error, len(e))
	for i, err := range e {
		all[i] = err
	}
	return errors.Join(all...)
}

func (e *fieldErrors) add(pos Position, format string, args ...any) {
	*e = append(*e, FieldError{pos, fmt.Sprintf(format, args...)})
}

// has reports whether any of the fields has an error. Errors that only follow
// from such an error are not worth reporting.
func (e fieldErrors) has(fields ...string) bool {
	return slices.ContainsFunc(e, func(err FieldError) bool { return slices.Contains(fields, err.Field) })
}

// below reports whether a part of a setting has an error, other than one.
func (e fieldErrors) below(path, other string) bool {
	return slices.ContainsFunc(e, func(err FieldError) bool { return strings.HasPrefix(err.Field, path) && err.Field != other })
}
