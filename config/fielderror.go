package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// FieldError is one thing that is wrong, and where.
type FieldError struct {
	// File is the configuration file, empty for flags and environment.
	File string
	// Line is 1 for the first; 0 where the fault is not at any line.
	Line int
	// Field is a path such as accounts[1].token_file, a flag or a variable.
	Field string
	// Problem says what is wrong and what is allowed.
	Problem string
}

// String is the fault on one line, like "rental.yml:12: api.timeout: problem".
func (f FieldError) String() string {
	var place string
	if f.File != "" {
		place = f.File
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		place += ": "
	}
	if f.Field != "" {
		place += f.Field + ": "
	}
	// A quoted key or a file's name may contain a line break.
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, place+f.Problem)
}

// FieldErrors is every fault found: those of flags and environment first, then
// those of the file in its order.
type FieldErrors []FieldError

// Error is one fault per line.
func (f FieldErrors) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// add records a problem at a place, which is a FieldError without its Problem.
func (f *FieldErrors) add(at FieldError, format string, args ...any) {
	at.Problem = fmt.Sprintf(format, args...)
	*f = append(*f, at)
}

// at reports whether any of the fields has a fault of its own, to spare the
// operator errs that only follow from it.
func (f FieldErrors) at(fields ...string) bool {
	return slices.ContainsFunc(f, func(fault FieldError) bool { return slices.Contains(fields, fault.Field) })
}

// err is the errs in file order, or nil: a typed nil in an error is not nil.
func (f FieldErrors) err() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b FieldError) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
	return f
}
