package rentalapi

import "slices"

const maxCauses = 10 // that an Invalid keeps

// FieldError is a field of a response that was not understood. It never contains the
// value that was found.
type FieldError struct {
	Field   string // path in the API, for example cpu.cores; empty for the whole value
	Problem string // for example "not an integer"
}

// Error says which field is wrong and why.
func (e FieldError) Error() string {
	if e.Field == "" {
		return e.Problem
	}
	return e.Field + ": " + e.Problem
}

// Absent returns whether the field has no value at all.
func (e FieldError) Absent() bool { return e.Problem == problemMissing || e.Problem == problemNull }

// Invalid counts the items of a response that were not understood in full, with the
// first item of each distinct cause.
type Invalid struct {
	Items  int     // each counts once, however many of its fields are wrong
	Causes []Cause // at most maxCauses
}

// Cause is why an item was not understood, and the first item with that cause.
type Cause struct {
	Item string // its id, or its position such as data[3]; pages without ids have none
	FieldError
}

// Error names the item, the field and the problem.
func (c Cause) Error() string {
	if c.Item == "" {
		return c.FieldError.Error()
	}
	return c.Item + ": " + c.FieldError.Error()
}

// Add counts one item if it has any errors.
func (v *Invalid) Add(item string, errs ...FieldError) {
	v.Items += min(len(errs), 1)
	for _, e := range errs {
		v.Merge(Invalid{Causes: []Cause{{item, e}}})
	}
}

// Merge adds the items and causes of another part of the same response.
func (v *Invalid) Merge(other Invalid) {
	v.Items += other.Items
	for _, c := range other.Causes {
		known := slices.ContainsFunc(v.Causes, func(k Cause) bool { return k.FieldError == c.FieldError })
		if !known && len(v.Causes) < maxCauses {
			v.Causes = append(v.Causes, c)
		}
	}
}
