package rentalapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
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
)

// Error is why a fetch gave no usable data. It never holds a token, a query or a part of the
// response's body.
type Error struct {
	Reason Reason
	Until  time.Time // when to ask again; zero if the API did not say
	Err    error     // the cause
	Hint   string    // what to do about it; empty if the cause says enough
}

// Error says what went wrong.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errors of a response that was read and cannot be used; to be wrapped.
var (
	ErrTooLarge   error = &Error{Reason: TooLarge, Err: errors.New("response is too large")}
	ErrIncomplete error = &Error{Reason: Incomplete, Err: errors.New("response is incomplete")}
)

// ErrorOf returns the *Error that an error wraps, and one with the reason Decode for any other.
func ErrorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Reason: Decode, Err: err}
}

// stage is what a request waits for.
type stage struct{ text atomic.Value }

// trace follows a request. It calls gotConn when the request can be sent.
func (s *stage) trace(gotConn func()) *httptrace.ClientTrace {
	set := func(text string) { s.text.Store(text) }
	proxy := func(err error) {
		if err == nil {
			set("proxyconnect") // without a proxy, another stage begins at once
		}
	}
	set("api.http: reading a file") // certificates and headers are read before a connection is asked for
	return &httptrace.ClientTrace{
		GetConn:           func(string) { set("dial") },
		DNSStart:          func(i httptrace.DNSStartInfo) { set("lookup " + i.Host) },
		ConnectStart:      func(string, string) { set("dial") },
		ConnectDone:       func(_, _ string, err error) { proxy(err) },
		TLSHandshakeStart: func() { set("TLS handshake") },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { proxy(err) },
		GotConn: func(httptrace.GotConnInfo) {
			set("response")
			gotConn()
		},
	}
}

// connectionError returns the error of a request whose response did not come in full.
func connectionError(ctx context.Context, err error, s *stage) *Error {
	network, ok := errors.AsType[net.Error](err)
	if ctx.Err() != nil || errors.Is(err, errFile) || ok && network.Timeout() { // the request, the TLS handshake or the system timed out
		return &Error{Reason: Timeout, Err: fmt.Errorf("%v: timed out", s.text.Load())}
	}
	if strings.Contains(err.Error(), "net/http: server response headers exceeded ") { // the library has no value for this error
		return &Error{Reason: TooLarge, Err: errors.New("response headers of more than 256 KiB")}
	}
	return &Error{Reason: Connection, Err: errors.New(describe(err))}
}

// describeLookup returns why a name was not found. Package net has no values for these errors.
func describeLookup(e *net.DNSError) string {
	cause := e.Err[strings.LastIndex(e.Err, ": ")+1:] // addresses are before it
	switch {
	case e.IsNotFound:
		return "no such host"
	case cause == "server misbehaving" && e.IsTemporary:
		cause = "SERVFAIL"
	case cause == "server misbehaving":
		cause = "REFUSED or a similar error"
	}
	return "DNS server: " + strings.TrimSpace(cause)
}

// describe returns a cause that an operator can do something about, and else that there was no
// valid response. It repeats nothing that the other side sent but its certificate: net/http repeats a
// response that is no HTTP, which might contain the token or other private data.
// Nor does it repeat addresses of this machine and its network, as package net does.
func describe(err error) string {
	operation, otherwise, text := "", "no valid HTTP response", ""
	for ; err != nil; err = errors.Unwrap(err) {
		text = err.Error()
		switch e := err.(type) { //nolint:errorlint // the loop unwraps
		case *fs.PathError: // certificates and headers are read again for each request
			return "api.http: cannot read a file: " + describe(e.Err)
		case *Error, *tls.CertificateVerificationError: // our own, and a certificate, which is public
			return text
		case *net.DNSError:
			return "lookup " + e.Name + ": " + describeLookup(e) // the configuration sets the name
		case *net.OpError: // those of a proxy are "proxyconnect" and "socks connect"
			operation, otherwise = cmp.Or(operation, e.Op+": "), "failed"
		case syscall.Errno:
			return operation + text
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			otherwise = "connection closed before the response was complete"
		}
	}
	switch { // these libraries have no types for their errors
	case strings.HasPrefix(text, "tls: "):
		return operation + text
	case strings.HasPrefix(text, "unable to use specified CA cert "):
		return "api.http.tls_config.ca_file: not a CA certificate"
	}
	return operation + otherwise
}
