package rentalapi

import "slices"

// MaxCauses bounds how many causes an Invalid keeps.
const MaxCauses = 10

// Invalid counts the items of a response that were not understood in full, with the
// first item of each distinct cause.
type Invalid struct {
	Items  int     // each counts once, however many of its fields are wrong
	Causes []Cause // at most ten
}

// Cause is why an item was not understood, and the first item with that cause.
type Cause struct {
	Item string // its id, or its position such as data[3]
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
	if len(errs) == 0 {
		return
	}
	v.Items++
	for _, e := range errs {
		v.addCause(Cause{item, e})
	}
}

// AddMany counts n items with the same error, of which the first is named; none if n is less
// than 1.
func (v *Invalid) AddMany(n int, item string, err FieldError) {
	if n > 0 {
		v.Items += n
		v.addCause(Cause{item, err})
	}
}

func (v *Invalid) addCause(c Cause) {
	known := slices.ContainsFunc(v.Causes, func(k Cause) bool { return k.FieldError == c.FieldError })
	if !known && len(v.Causes) < MaxCauses {
		v.Causes = append(v.Causes, c)
	}
}

// Merge adds the items and causes of another part of the same response.
func (v *Invalid) Merge(other Invalid) {
	v.Items += other.Items
	for _, c := range other.Causes {
		v.addCause(c)
	}
}
