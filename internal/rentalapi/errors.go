package rentalapi

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Reason says in one word why a request gave no data. It is the label of
// server_rental_exporter_api_errors_total.
type Reason string

// The reasons.
const (
	Timeout      Reason = "timeout"
	Connection   Reason = "connection"
	Status       Reason = "status"
	Decode       Reason = "decode"
	Incomplete   Reason = "incomplete"
	TooLarge     Reason = "too_large"
	Unauthorized Reason = "unauthorized"
	RateLimited  Reason = "rate_limited"
	Unavailable  Reason = "unavailable"

	// Paused is the reason of a request that was not made, because the API asked for a
	// backoff that has not ended yet. It is not counted.
	Paused Reason = "paused"
)

// Error is a request that gave no usable response. It never holds a token, a
// query or a part of the response's body beyond the API's own error code.
type Error struct {
	Path   string // path below the base URL
	Reason Reason
	Code   int       // HTTP status other than 200; 0 if that is not the cause
	Until  time.Time // when to ask again; zero if the API did not say
	Err    error     // the cause; may be nil
}

// Error says which path failed and why.
func (e *Error) Error() string {
	text := e.Path
	if e.Code != 0 {
		text += fmt.Sprintf(": status %d", e.Code)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Causes of a response that was read and cannot be used.
var (
	ErrTooLarge   = errors.New("response is too large")
	ErrIncomplete = errors.New("response is incomplete")
)

// newError returns an error with a reason, unless err says more about that.
func newError(reason Reason, err error) *Error {
	switch {
	case errors.Is(err, ErrTooLarge):
		reason = TooLarge
	case errors.Is(err, ErrIncomplete):
		reason = Incomplete
	}
	return &Error{Reason: reason, Err: err}
}

// connectionError is the error of a request whose response did not come in full.
func connectionError(ctx context.Context, timeout time.Duration, err error) *Error {
	var network net.Error
	deadline, _ := ctx.Deadline() // a connection may notice it before ctx does
	switch {
	case ctx.Err() != nil, !time.Now().Before(deadline):
		return newError(Timeout, fmt.Errorf("no response within %s", timeout))
	case errors.As(err, &network) && network.Timeout(): // of the TLS handshake, or of the system
		return newError(Timeout, errors.New("connection timed out"))
	}
	return newError(Connection, sanitizeError(err))
}

// sanitizeError returns the cause without anything that the other side sent: net/http
// repeats a response that is no HTTP, and a certificate its names. Either might
// contain the token or other private data. It contains no address of this machine and its
// network either: package net repeats those of connections and name servers.
func sanitizeError(err error) error {
	var (
		file    *fs.PathError // certificates and headers are read again for each request
		name    x509.HostnameError
		lookup  *net.DNSError
		network *net.OpError
	)
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("api.http: cannot read a file: %w", file.Err)
	case strings.HasPrefix(err.Error(), "unable to use specified CA cert "):
		return errors.New("api.http.tls_config.ca_file: not a CA certificate")
	case errors.As(err, &name):
		return fmt.Errorf("tls: certificate for other names, not %s", name.Host)
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return errors.New("tls: certificate signed by unknown authority: set api.http.tls_config.ca_file to its certificate")
	case errors.As(err, new(x509.CertificateInvalidError)):
		return errors.New("tls: certificate expired, not yet valid, or not for this use")
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("lookup %s: no such host", lookup.Name) // which the configuration sets
	case errors.As(err, &lookup):
		return fmt.Errorf("lookup %s: failed", lookup.Name)
	case errors.As(err, &network):
		return fmt.Errorf("%s: %w", strings.TrimSpace(network.Op+" "+network.Net), knownCause(network.Err, "failed"))
	}
	return knownCause(err, "no valid HTTP response")
}

// knownCause returns the first of an error's causes whose text is of Go, the system or a
// proxy's status as HTTP defines it, or else an error with another text.
func knownCause(err error, otherwise string) error {
	for code := range 600 {
		if text := http.StatusText(code); text != "" && text == err.Error() {
			return fmt.Errorf("proxy: %w", err)
		}
	}
	known := []error{io.EOF, io.ErrUnexpectedEOF, http.ErrSchemeMismatch}
	for ; err != nil; err = errors.Unwrap(err) {
		_, ofSystem := err.(syscall.Errno) //nolint:errorlint // the loop unwraps
		ofTLS, ofSOCKS := strings.HasPrefix(err.Error(), "tls: "), strings.HasPrefix(err.Error(), "unknown error ")
		if ofSystem || ofTLS || ofSOCKS || slices.Contains(known, err) {
			return err
		}
	}
	return errors.New(otherwise)
}
