package rentalapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"server_rental_exporter/internal/metric"
)

var (
	requestsTotal = metric.Counter("exporter_api_requests_total",
		"Requests made to the rental API, by path and status code; code is error where no answer came.",
		"the exporter", "endpoint", "code").SeriesPer("endpoint and code")
	requestDuration = metric.Histogram("exporter_api_request_duration_seconds",
		"Time from sending a request until its answer was read.",
		"the exporter", "endpoint")
	errorsTotal = metric.Counter("exporter_api_errors_total",
		"Requests without usable data, by reason.",
		"the exporter", "endpoint", "reason").SeriesPer("endpoint and reason")
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

// AccountDefinitions lists the metrics that AccountMetrics returns.
func AccountDefinitions() []*metric.Definition {
	return []*metric.Definition{rateLimit, rateLimitRemaining, tokenRejected, backoffUntil}
}

// AccountMetrics returns the state of each scope, and when it changes by the passing
// of time; zero where it does not.
func (c *Client) AccountMetrics(now time.Time) (metrics []prometheus.Metric, expires time.Time) {
	c.mu.Lock()
	scopes := make([]*Scope, 0, len(c.scopes))
	for _, s := range c.scopes {
		scopes = append(scopes, s)
	}
	c.mu.Unlock()
	b := &metric.Builder{}
	for _, s := range scopes {
		s.mu.Lock()
		state := s.state
		s.mu.Unlock()
		metric.AddOptional(b, rateLimit, state.limit, s.account)
		metric.AddOptional(b, rateLimitRemaining, state.remaining, s.account)
		b.AddBool(tokenRejected, state.rejected, s.account)
		if state.limiter == nil {
			continue
		}
		if until, paused := state.limiter.pausedUntil(now); paused {
			b.Add(backoffUntil, float64(until.UnixMilli())/1000, s.account)
			if expires.IsZero() || until.Before(expires) {
				expires = until
			}
		}
	}
	return b.Metrics(), expires
}

// setLimiter records which limiter the scope uses: that of its present token, which
// other accounts may have paused already.
func (s *Scope) setLimiter(l *limiter) {
	s.mu.Lock()
	changed := s.state.limiter != l
	s.state.limiter = l
	s.mu.Unlock()
	if changed {
		s.client.onAccountUpdate()
	}
}

func (s *Scope) setRejected(rejected bool) {
	s.mu.Lock()
	s.state.rejected = &rejected
	s.mu.Unlock()
	s.client.onAccountUpdate()
}

// recordHeaders keeps the RateLimit headers of an answer; unreadable ones change
// nothing.
func (s *Scope) recordHeaders(h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for header, field := range map[string]**float64{"RateLimit-Limit": &s.state.limit, "RateLimit-Remaining": &s.state.remaining} {
		n, err := strconv.ParseUint(strings.TrimSpace(h.Get(header)), 10, 32)
		if err == nil {
			v := float64(n)
			*field = &v
		}
	}
}

// requestMetrics count requests; their number of series does not grow with accounts.
type requestMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

func newRequestMetrics() *requestMetrics {
	counter := func(d *metric.Definition) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
	}
	return &requestMetrics{
		requests: counter(requestsTotal),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: requestDuration.Name, Help: requestDuration.Help, Unit: requestDuration.BaseUnit(),
			Buckets:                         []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, requestDuration.Labels),
		errors: counter(errorsTotal),
	}
}

func (m *requestMetrics) countRequest(endpoint, code string, duration time.Duration) {
	m.requests.WithLabelValues(endpoint, code).Inc()
	m.duration.WithLabelValues(endpoint).Observe(duration.Seconds())
}

func (m *requestMetrics) countError(endpoint string, reason Reason) {
	m.errors.WithLabelValues(endpoint, string(reason)).Inc()
}

func (m *requestMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.errors}
}

func (m *requestMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

func (m *requestMetrics) collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}
