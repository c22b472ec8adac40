package rentalapi

import (
	"cmp"
	"context"
	"crypto/tls"
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

	// Backoff is the reason of a request that was not made, because a backoff that the API
	// asked for has not ended yet. It is not counted.
	Backoff Reason = "backoff"
)

// Error is a request that gave no usable response. It never holds a token, a
// query or a part of the response's body.
type Error struct {
	Path   string // path below the base URL; set by Client.Reject
	Reason Reason
	Until  time.Time // when to ask again; zero if the API did not say
	Err    error     // the cause
}

// Error says which path failed and why.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Causes of a response that was read and cannot be used.
var (
	ErrTooLarge   = errors.New("response is too large")
	ErrIncomplete = errors.New("response is incomplete")
)

// connectionError is the error of a request whose response did not come in full.
func connectionError(ctx context.Context, err error) *Error {
	network, ok := errors.AsType[net.Error](err)
	if ctx.Err() != nil || ok && network.Timeout() { // of the request; of the TLS handshake, or of the system
		return &Error{Reason: Timeout, Err: errors.New("timed out before the response was complete")}
	}
	for _, text := range []string{"net/http: server response headers exceeded ", "http2: response header list larger than "} {
		if strings.Contains(err.Error(), text) { // the library has no value for this error
			return &Error{Reason: TooLarge, Err: errors.New("response headers of more than 256 KiB")}
		}
	}
	return &Error{Reason: Connection, Err: errors.New(describe(err))}
}

// describe returns a cause that an operator can do something about, and else that there was no
// valid response. It repeats nothing that the other side sent: net/http repeats a response that
// is no HTTP, and a certificate its names, which might contain the token or other private data.
// Nor does it repeat addresses of this machine and its network, as package net does.
func describe(err error) string {
	operation, otherwise, text := "", "no valid HTTP response", ""
	for ; err != nil; err = errors.Unwrap(err) {
		text = err.Error()
		switch e := err.(type) { //nolint:errorlint // the loop unwraps
		case *fs.PathError: // certificates and headers are read again for each request
			return "api.http: cannot read a file: " + describe(e.Err)
		case *net.DNSError:
			if e.IsNotFound {
				return "lookup " + e.Name + ": no such host" // which the configuration sets
			}
			return "lookup " + e.Name + ": failed"
		case x509.HostnameError:
			return "tls: certificate for other names, not " + e.Host
		case x509.UnknownAuthorityError:
			return "tls: certificate signed by unknown authority: set api.http.tls_config.ca_file to its certificate"
		case *tls.CertificateVerificationError:
			otherwise = "tls: certificate expired, not yet valid, or not for this use"
		case *net.OpError: // "proxyconnect" and "socks connect" are of a proxy
			operation, otherwise = cmp.Or(operation, e.Op+": "), "failed"
		case syscall.Errno:
			return operation + text
		}
	}
	known := []error{http.ErrSchemeMismatch}
	switch {
	case text == io.EOF.Error(), text == io.ErrUnexpectedEOF.Error():
		return operation + "connection closed before the response was complete"
	case strings.HasPrefix(text, "tls: "), slices.ContainsFunc(known, func(k error) bool { return k.Error() == text }):
		return operation + text
	case strings.HasPrefix(text, "unable to use specified CA cert "):
		return "api.http.tls_config.ca_file: not a CA certificate"
	}
	for code := http.StatusBadRequest; code < 600; code++ { // a proxy's, whose text is repeated if it is HTTP's own
		if text == http.StatusText(code) {
			return "proxy: " + text
		}
	}
	return operation + otherwise
}
