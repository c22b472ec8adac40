package simulator

// Internals for tests in package simulator_test.
const (
	MaxTopups       = maxTopups
	MaxTransactions = maxTransactions
)

// Functions for tests in package simulator_test.
var (
	Number  = number
	Cents   = cents
	Find    = find
	Count   = count
	InStock = inStock
	MakeID  = makeID
	Stamp   = stamp
	Balance = (*Account).balance
)
