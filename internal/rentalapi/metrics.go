package rentalapi

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/server-rental-exporter/server_rental_exporter/internal/metric"
)

var (
	apiSet metric.Set

	requestsTotal = apiSet.Counter("exporter_api_requests_total",
		"Requests made to the rental API, by path and status code; code is error if no response came.", "path", "code")
	requestDuration = apiSet.Histogram("exporter_api_request_duration_seconds",
		"Time in seconds from sending a request until its response was read.", "path")
	errorsTotal = apiSet.Counter("exporter_api_errors_total",
		"Fetches without usable data, by reason.", "path", "reason")
	rateLimit = apiSet.Gauge("exporter_api_rate_limit",
		"Requests per minute that the API allows with this token, as last seen.", "account")
	rateLimitRemaining = apiSet.Gauge("exporter_api_rate_limit_remaining",
		"Requests that the API still allows with this token before the limit is reset, as last seen.", "account")
	tokenRejected = apiSet.Gauge("exporter_api_token_rejected",
		"Whether this account's token was refused when the API last judged it, or could not be read: 1 or 0.", "account")
	backoffUntil = apiSet.Gauge("exporter_api_backoff_until_timestamp_seconds",
		"End of the backoff that the API asked for. Account is empty for the public endpoints.", "account")
)

// Definitions lists the metrics of the client itself.
func Definitions() []*metric.Definition { return apiSet }

func (a *API) registerMetrics(r prometheus.Registerer) {
	metrics := promauto.With(r)
	a.requests = metrics.NewCounterVec(prometheus.CounterOpts{Name: requestsTotal.Name, Help: requestsTotal.Help}, requestsTotal.Labels)
	a.errors = metrics.NewCounterVec(prometheus.CounterOpts{Name: errorsTotal.Name, Help: errorsTotal.Help}, errorsTotal.Labels)
	a.duration = metrics.NewHistogramVec(prometheus.HistogramOpts{
		Name: requestDuration.Name, Help: requestDuration.Help, Unit: requestDuration.BaseUnit(),
		Buckets:                         []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, requestDuration.Labels)
}

// InitErrorCounters starts the error counters of an endpoint at 0, so that the first
// error of a kind is an increase.
func (a *API) InitErrorCounters(path string) {
	for _, r := range []Reason{Timeout, Connection, Status, Decode, Incomplete, TooLarge, Unauthorized, RateLimited, Unavailable} {
		a.errors.WithLabelValues(path, string(r))
	}
}

// AddMetrics adds what the API last said to the account, whose name is empty for public
// requests, and returns when that changes by the passing of time; zero if it does not.
func (c *Client) AddMetrics(b *metric.Builder, now time.Time) (expires time.Time) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	metric.AddOptional(b, rateLimit, c.limit, c.account)
	metric.AddOptional(b, rateLimitRemaining, c.remaining, c.account)
	b.AddBool(tokenRejected, c.rejected, c.account)
	if l := c.api.limiters[c.sent]; l != nil && l.backoff.Until.After(now) {
		expires = l.backoff.Until
		b.Add(backoffUntil, float64(expires.UnixMilli())/1000, c.account)
	}
	return expires
}

// record keeps what a response says about the token that was sent. Nothing is sent with it
// until the end of its backoff, or of a longer one.
func (c *Client) record(resp *http.Response, token Fingerprint, backoff Error) {
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if l := c.api.limiter(token); backoff.Until.After(l.backoff.Until) {
		l.backoff = backoff
	}
	if c.account == "" {
		return
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusUnauthorized { // others are no verdict on the token
		c.rejected = new(resp.StatusCode == http.StatusUnauthorized)
	}
	c.limit = cmp.Or(headerNumber(resp.Header, "RateLimit-Limit"), c.limit)
	c.remaining = cmp.Or(headerNumber(resp.Header, "RateLimit-Remaining"), c.remaining)
}

// headerNumber returns the whole number in a header; nil if there is none.
func headerNumber(h http.Header, name string) *float64 {
	n, err := strconv.ParseUint(strings.TrimSpace(h.Get(name)), 10, 32)
	if err != nil {
		return nil
	}
	return new(float64(n))
}
