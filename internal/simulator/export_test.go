package simulator

// Internals for tests in package simulator_test.
const (
	MaxTopups       = maxTopups
	MaxTransactions = maxTransactions
)

// Functions for tests in package simulator_test.
var (
	Cents  = cents
	MakeID = makeID
)
