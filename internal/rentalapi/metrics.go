package rentalapi

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"server_rental_exporter/internal/metric"
)

var (
	requestsTotal = metric.Counter("exporter_api_requests_total",
		"Requests made to the rental API, by path and status code; code is error if no response came.", "path", "code")
	requestDuration = metric.Histogram("exporter_api_request_duration_seconds",
		"Time from sending a request until its response was read.", "path")
	errorsTotal = metric.Counter("exporter_api_errors_total",
		"Requests without usable data, by reason.", "path", "reason")
	rateLimit = metric.Gauge("exporter_api_rate_limit",
		"Requests per minute that the API allows with this token, as last seen.", "account")
	rateLimitRemaining = metric.Gauge("exporter_api_rate_limit_remaining",
		"Requests that the API still allows with this token before the limit is reset, as last seen.", "account")
	tokenRejected = metric.Gauge("exporter_api_token_rejected",
		"Whether this account's token was refused when the API last judged it, or could not be read: 1 or 0.", "account")
	backoffUntil = metric.Gauge("exporter_api_backoff_until_timestamp_seconds",
		"End of the backoff that the API asked for; absent while there is none. Account is empty for the public endpoints.", "account")
)

// Definitions lists the metrics of the client itself.
func Definitions() []*metric.Definition {
	return []*metric.Definition{requestsTotal, requestDuration, errorsTotal, rateLimit, rateLimitRemaining, tokenRejected, backoffUntil}
}

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

// AddMetrics adds the state of the account, and returns when it changes by the passing of
// time; zero if it does not.
func (c *Client) AddMetrics(b *metric.Builder, now time.Time) (expires time.Time) {
	c.mu.Lock()
	state, sent := c.state, c.sent
	c.mu.Unlock()
	state.BackoffUntil = c.api.limiters.backoffUntil(sent, now)
	AddAccountMetrics(b, c.account, state)
	return state.BackoffUntil
}

// AccountState is what the API last said to an account, or to public requests. A value
// that is not known is nil.
type AccountState struct {
	Limit, Remaining *float64  // of the RateLimit headers
	Rejected         *bool     // whether the API last refused the token
	BackoffUntil     time.Time // zero if there is no backoff
}

// AddAccountMetrics adds the metrics of an account; its name is empty for public
// requests.
func AddAccountMetrics(b *metric.Builder, account string, s AccountState) {
	metric.AddOptional(b, rateLimit, s.Limit, account)
	metric.AddOptional(b, rateLimitRemaining, s.Remaining, account)
	b.AddBool(tokenRejected, s.Rejected, account)
	if !s.BackoffUntil.IsZero() {
		b.Add(backoffUntil, float64(s.BackoffUntil.UnixMilli())/1000, account)
	}
}

// record keeps whether the token was refused, unless that is nil, and the RateLimit headers
// that can be read.
func (c *Client) record(rejected *bool, h http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Rejected = cmp.Or(rejected, c.state.Rejected)
	for header, field := range map[string]**float64{"RateLimit-Limit": &c.state.Limit, "RateLimit-Remaining": &c.state.Remaining} {
		n, err := strconv.ParseUint(strings.TrimSpace(h.Get(header)), 10, 32)
		if err == nil {
			*field = new(float64(n))
		}
	}
}

// InitErrorCounters starts the error counters of an endpoint at 0, so that the first
// error of a kind is an increase.
func (a *API) InitErrorCounters(path string) {
	for _, r := range []Reason{Timeout, Connection, Status, Decode, Incomplete, TooLarge, Unauthorized, RateLimited, Unavailable} {
		a.errors.WithLabelValues(path, string(r))
	}
}

// CountRequest counts a request; its code is error if no response came.
func (a *API) CountRequest(path, code string, duration time.Duration) {
	a.requests.WithLabelValues(path, code).Inc()
	a.duration.WithLabelValues(path).Observe(duration.Seconds())
}

// CountError counts a request without usable data.
func (a *API) CountError(path string, reason Reason) {
	a.errors.WithLabelValues(path, string(reason)).Inc()
}
