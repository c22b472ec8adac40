package history

import (
	"testing"
	"testing/synctest"
	"time"
)

// epoch is when simulated time begins.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// simulate runs f in simulated time, which begins at epoch and passes while all
// goroutines that f started wait. They must end before f returns.
//
// All packages use the time package's clock, and only testing/synctest can replace it:
// a clock of our own would be an argument of every timer, ticker and deadline, also of
// those in net/http. Outside of go test, an empty T is enough for it.
func simulate(f func()) {
	synctest.Test(new(testing.T), func(*testing.T) { f() })
}
