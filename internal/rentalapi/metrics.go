package rentalapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"server_rental_exporter/internal/metric"
)

var (
	requestsTotal = metric.Counter("exporter_api_requests_total",
		"Requests made to the rental API, by path and status code; code is error if no response came, and other if HTTP does not define it.",
		"the exporter", "path", "code")
	requestDuration = metric.Histogram("exporter_api_request_duration_seconds",
		"Time from sending a request until its response was read.",
		"the exporter", "path")
	errorsTotal = metric.Counter("exporter_api_errors_total",
		"Requests without usable data, by reason.",
		"the exporter", "path", "reason")
	rateLimit = metric.Gauge("exporter_api_rate_limit",
		"Requests per minute that the API allows with this token, as last seen.",
		"header RateLimit-Limit", "account")
	rateLimitRemaining = metric.Gauge("exporter_api_rate_limit_remaining",
		"Requests that the API still allows with this token before the limit is reset, as last seen.",
		"header RateLimit-Remaining", "account")
	tokenRejected = metric.Gauge("exporter_api_token_rejected",
		"Whether the last request with this account's token was refused for its token, or the token could not be read: 1 or 0.",
		"status 401", "account")
	backoffUntil = metric.Gauge("exporter_api_backoff_until_timestamp_seconds",
		"End of the pause that the API asked for; absent while there is none. Account is empty for the public endpoints.",
		"header Retry-After or RateLimit-Reset", "account")
)

// Definitions lists the metrics of the client itself.
func Definitions() []*metric.Definition {
	return append([]*metric.Definition{requestsTotal, requestDuration, errorsTotal}, AccountDefinitions()...)
}

// AccountDefinitions lists the metrics of accounts.
func AccountDefinitions() []*metric.Definition {
	return []*metric.Definition{rateLimit, rateLimitRemaining, tokenRejected, backoffUntil}
}

// AddMetrics adds the state of the scope, and returns when it changes by the passing of
// time; zero if it does not.
func (s *Client) AddMetrics(b *metric.Builder, now time.Time) (expires time.Time) {
	s.mu.Lock()
	state, sent := s.state, s.sent
	s.mu.Unlock()
	state.PausedUntil = s.client.limiters.pausedUntil(sent, now)
	AddAccountMetrics(b, s.account, state)
	return state.PausedUntil
}

// AccountState is what the API last said to an account, or to public requests. A value
// that is not known is nil.
type AccountState struct {
	Limit, Remaining *float64  // of the RateLimit headers
	Rejected         *bool     // whether the last request was refused for its token
	PausedUntil      time.Time // zero if no pause is under way
}

// AddAccountMetrics adds the metrics of an account; its name is empty for public
// requests.
func AddAccountMetrics(b *metric.Builder, account string, s AccountState) {
	metric.AddOptional(b, rateLimit, s.Limit, account)
	metric.AddOptional(b, rateLimitRemaining, s.Remaining, account)
	b.AddBool(tokenRejected, s.Rejected, account)
	if !s.PausedUntil.IsZero() {
		b.Add(backoffUntil, float64(s.PausedUntil.UnixMilli())/1000, account)
	}
}

// record keeps whether the token was rejected, and the RateLimit headers of a response;
// unreadable ones change nothing.
func (s *Client) record(rejected bool, h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Rejected = &rejected
	for header, field := range map[string]**float64{"RateLimit-Limit": &s.state.Limit, "RateLimit-Remaining": &s.state.Remaining} {
		n, err := strconv.ParseUint(strings.TrimSpace(h.Get(header)), 10, 32)
		if err == nil {
			*field = new(float64(n))
		}
	}
}

// InitErrorCounters starts the error counters of an endpoint at 0, so that the first
// error of a kind is an increase.
func (c *API) InitErrorCounters(path string) {
	for _, r := range []Reason{Timeout, Connection, Status, Decode, Incomplete, TooLarge, Unauthorized, RateLimited, Unavailable} {
		c.errors.WithLabelValues(path, string(r))
	}
}

// CountRequest counts a request; its code is error if no response came.
func (c *API) CountRequest(path, code string, duration time.Duration) {
	c.requests.WithLabelValues(path, code).Inc()
	c.duration.WithLabelValues(path).Observe(duration.Seconds())
}

// CountError counts a request without usable data.
func (c *API) CountError(path string, reason Reason) {
	c.errors.WithLabelValues(path, string(reason)).Inc()
}
