package rentalapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Burst is how many requests go out at once. It is small so that a process which is killed
// and started again every few seconds stays within what the API allows.
const Burst = 4

// Limits are the requests that may be sent in any 60 seconds; more than Burst.
type Limits struct {
	Public  int // requests without token, from this address
	Account int // requests with one token
}

// refill returns the requests per second for a token, or for public requests. A limiter sends at
// most Burst + refill*t requests in t seconds, which is the limit for 60 seconds.
func (l Limits) refill(token Fingerprint) rate.Limit {
	limit := l.Account
	if token == fingerprint("") {
		limit = l.Public
	}
	return rate.Limit(limit-Burst) / 60
}

// Fingerprint identifies a token without revealing it: its hash. That of public requests is
// the hash of no token.
type Fingerprint [sha256.Size]byte

func fingerprint(token string) Fingerprint { return sha256.Sum256([]byte(token)) }

// limiter is the rate limit of one token, or of public requests.
type limiter struct {
	*rate.Limiter
	backoff Error // why nothing is sent before its Until
}

// limiter returns the limiter of a token. The caller must hold mu for as long as it uses the limiter.
func (a *API) limiter(token Fingerprint) *limiter {
	if l := a.limiters[token]; l != nil {
		return l
	}
	maps.DeleteFunc(a.limiters, func(_ Fingerprint, l *limiter) bool { // those that are as good as new
		return l.Tokens() >= Burst && time.Now().After(l.backoff.Until)
	})
	l := &limiter{Limiter: rate.NewLimiter(a.settings.Load().Limits.refill(token), Burst)}
	a.limiters[token] = l
	return l
}

// Requests to an endpoint at a time, and those of accounts whose last request there timed out. With six endpoints
// of accounts, and four public ones that are asked one at a time, 28 connections are open at most, so that a
// process with 64 file descriptors can still serve.
const (
	maxRequests        = 3
	maxHangingRequests = 1
)

// permits returns those for requests to a path. Accounts that hang there share others.
func (c *Client) permits(path string) *semaphore.Weighted {
	if hangs, _ := c.hangs.Load(path); hangs == true {
		return c.api.permitsFor(path+" hanging", maxHangingRequests)
	}
	return c.api.permitsFor(path, maxRequests)
}

// permitsFor returns the n permits for something.
func (a *API) permitsFor(what string, n int64) *semaphore.Weighted {
	permits, _ := a.permits.LoadOrStore(what, semaphore.NewWeighted(n))
	return permits.(*semaphore.Weighted)
}

// wait returns when a request may be sent, with its token, or fails with an *Error or the cause of ctx. It
// takes a permit, which the caller must release: a request is counted when only its connection can
// delay it, and no more token files are open than there are permits.
func (c *Client) wait(ctx context.Context, path string) (token string, permit *semaphore.Weighted, err error) {
	permit = c.permits(path)
	for {
		if permit.Acquire(ctx, 1) != nil {
			return "", nil, context.Cause(ctx)
		}
		var delay time.Duration
		if token, err = c.readToken(ctx, path); err == nil {
			delay, err = c.take(fingerprint(token))
		}
		if err == nil && delay == 0 {
			return token, permit, nil
		}
		permit.Release(1)
		if err != nil {
			return "", nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// take counts a request that may be sent now, or returns the delay before the next call.
func (c *Client) take(token Fingerprint) (time.Duration, error) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	c.sent = token
	now, l := time.Now(), c.api.limiter(token)
	switch delay := l.backoff.Until.Sub(now); {
	case delay > maxWait:
		failure := l.backoff
		failure.Err = fmt.Errorf("no request made: the API asked to wait until %s: %w", failure.Until.UTC().Format(time.RFC3339), failure.Err)
		return 0, &failure
	case delay > 0:
		return delay, nil
	}
	reserved := l.ReserveN(now, 1)
	delay := reserved.DelayFrom(now)
	if delay > 0 {
		reserved.CancelAt(now) // the limit may change, or a backoff begin, while it waits
	}
	return delay, nil
}

// countLate counts a request again that is sent more than a second after it was counted, because its
// connection took so long.
func (c *Client) countLate(token Fingerprint, counted time.Time) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if time.Since(counted) > time.Second {
		c.api.limiter(token).Reserve()
	}
}

// The provider does not document the units of Retry-After and RateLimit-Reset, so every usual
// one is understood.
const (
	maxWait        = 10 * time.Second // a request that would wait longer for the end of a backoff fails, and is retried later
	minBackoff     = time.Second
	maxBackoff     = 24 * time.Hour // a maintenance page may say 2099
	unknownBackoff = time.Minute    // if the header is missing or cannot be read
	firstEpoch     = 1e9            // seconds: larger numbers are a point in time (2001 or later); from 1e12 on in milliseconds or finer
)

// parseDelay reads a delay from a header value: seconds, an HTTP date, or Unix time in seconds,
// milliseconds, microseconds or nanoseconds. Points in time are compared with date, which is by the
// provider's own clock: the local one may be wrong.
func parseDelay(value string, date time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(date), minBackoff), maxBackoff)
	}
	seconds, err := strconv.ParseFloat(value, 64)
	for range 3 {
		if seconds >= firstEpoch*1e3 {
			seconds /= 1e3
		}
	}
	switch {
	case seconds > math.MaxUint32: // also if it is larger than any number
		return maxBackoff
	case err != nil, !(seconds >= 0):
		return unknownBackoff
	case seconds >= firstEpoch:
		seconds -= float64(date.Unix())
	}
	return time.Duration(min(max(seconds, minBackoff.Seconds()), maxBackoff.Seconds()) * float64(time.Second))
}

// retryDelay returns how long a response asks to wait before the next request; 0 if it does
// not. Of a status and RateLimit-Remaining, the longer delay counts.
func retryDelay(resp *http.Response, date time.Time) (delay time.Duration) {
	retry, reset := resp.Header.Get("Retry-After"), resp.Header.Get("RateLimit-Reset")
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode != http.StatusOK && retry != "" {
		delay = parseDelay(retry, date)
	}
	remaining := headerNumber(resp.Header, "RateLimit-Remaining")
	if exhausted := remaining != nil && *remaining == 0; exhausted && (delay == 0 || reset != "") { // without a reset, the status decides
		delay = max(delay, parseDelay(reset, date))
	}
	return delay
}
