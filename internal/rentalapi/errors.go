package rentalapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Reason says in one word why a request gave no data. It is the label of
// server_rental_exporter_api_errors_total.
type Reason string

// Every reason there is.
const (
	Timeout      Reason = "timeout"
	Connection   Reason = "connection"
	Status       Reason = "status"
	Decode       Reason = "decode"
	TooLarge     Reason = "too_large"
	Unauthorized Reason = "unauthorized"
	RateLimited  Reason = "rate_limited"
	Unavailable  Reason = "unavailable"
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{Timeout, Connection, Status, Decode, TooLarge, Unauthorized, RateLimited, Unavailable}
}

// Error is a request that gave no usable answer. It never holds a token, a
// query or a part of the answer's body beyond the API's own error code.
type Error struct {
	Endpoint string // path below the base URL
	Reason   Reason
	Code     int       // HTTP status; 0 where no answer came
	Until    time.Time // when to ask again, where the API said so
	Err      error     // the cause; may be nil
}

// Error says what was asked and what went wrong.
func (e *Error) Error() string {
	switch {
	case e.Err != nil && e.Code != 0 && e.Code != 200:
		return fmt.Sprintf("%s: status %d: %v", e.Endpoint, e.Code, e.Err)
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Endpoint, e.Err)
	default:
		return fmt.Sprintf("%s: status %d", e.Endpoint, e.Code)
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// RetryAt is the time before which asking again is of no use; zero where the API did not say.
func (e *Error) RetryAt() time.Time { return e.Until }

// Class groups errors that an operator would call the same.
func (e *Error) Class() string { return e.Endpoint + " " + string(e.Reason) }

// PausedError is a request that was not made, because the API asked for a pause
// that has not ended yet.
type PausedError struct {
	Until time.Time
	Cause string
}

// Error says how long nothing is asked, and why.
func (e *PausedError) Error() string {
	return fmt.Sprintf("not asked: %s; waiting until %s", e.Cause, e.Until.UTC().Format(time.RFC3339))
}

// RetryAt is the end of the pause.
func (e *PausedError) RetryAt() time.Time { return e.Until }

// Class groups errors that an operator would call the same.
func (e *PausedError) Class() string { return "paused" }

var errTooLarge = errors.New("answer is too large")

// broken is the error of a request whose answer did not come, or not to its end.
func broken(ctx context.Context, endpoint string, code int, err error) *Error {
	e := &Error{Endpoint: endpoint, Reason: Connection, Code: code, Err: err}
	var timeout net.Error
	switch {
	case errors.Is(err, errTooLarge):
		e.Reason = TooLarge
	case ctx.Err() != nil: // however the transport words it
		e.Reason, e.Err = Timeout, ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Reason = Timeout
	}
	return e
}
