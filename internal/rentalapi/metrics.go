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
		"Requests made to the rental API, by path and by status code of the answer; code is error where no answer came.",
		"the exporter", "endpoint", "code").Per("endpoint and code")
	requestDuration = metric.Histogram("exporter_api_request_duration_seconds",
		"Time from sending a request until its answer was read.",
		"the exporter", "endpoint")
	errorsTotal = metric.Counter("exporter_api_errors_total",
		"Requests that gave no usable data, by reason.",
		"the exporter", "endpoint", "reason").Per("endpoint and reason")
	rateLimit = metric.Gauge("exporter_api_rate_limit",
		"Requests per minute that the API allows this token, as it last said.",
		"header RateLimit-Limit", "account")
	rateLimitRemaining = metric.Gauge("exporter_api_rate_limit_remaining",
		"Requests that the API still allows this token before the limit is reset, as it last said.",
		"header RateLimit-Remaining", "account")
	tokenRejected = metric.Gauge("exporter_api_token_rejected",
		"Whether the API refused this account's token the last time it was asked with it, or the token could not be read: 1 or 0.",
		"status 401", "account")
	backoffUntil = metric.Gauge("exporter_api_backoff_until_timestamp_seconds",
		"Until when nothing is asked because the API said so; absent where nothing is being waited for. Account is empty for the public endpoints.",
		"header Retry-After or RateLimit-Reset", "account")
)

// Definitions lists the metrics of the client itself.
func Definitions() []*metric.Definition {
	return []*metric.Definition{requestsTotal, requestDuration, errorsTotal, rateLimit, rateLimitRemaining, tokenRejected, backoffUntil}
}

type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	limit     *prometheus.GaugeVec
	remaining *prometheus.GaugeVec
	rejected  *prometheus.GaugeVec
}

func newMetrics() *metrics {
	gauge := func(d *metric.Definition) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.Labels)
	}
	counter := func(d *metric.Definition) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
	}
	return &metrics{
		requests: counter(requestsTotal),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: requestDuration.Name, Help: requestDuration.Help,
			Buckets:                         []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, requestDuration.Labels),
		errors:    counter(errorsTotal),
		limit:     gauge(rateLimit),
		remaining: gauge(rateLimitRemaining),
		rejected:  gauge(tokenRejected),
	}
}

// Expect makes the error counters of an endpoint start at 0, so that the first
// error of a kind is a rise.
func (c *Client) Expect(endpoint string) {
	for _, r := range Reasons() {
		c.metrics.errors.WithLabelValues(endpoint, string(r))
	}
}

func (m *metrics) observe(endpoint string, resp *http.Response, fault *Error, took time.Duration) {
	code := "error"
	if resp != nil {
		code = strconv.Itoa(resp.StatusCode)
	}
	m.requests.WithLabelValues(endpoint, code).Inc()
	m.duration.WithLabelValues(endpoint).Observe(took.Seconds())
	if fault != nil {
		m.errors.WithLabelValues(endpoint, string(fault.Reason)).Inc()
	}
}

// token keeps whether an account's token was refused.
func (m *metrics) token(account string, refused bool) {
	value := 0.0
	if refused {
		value = 1
	}
	m.rejected.WithLabelValues(account).Set(value)
}

// limits keeps the rate limit headers of an answer; unreadable ones change nothing.
func (m *metrics) limits(account string, h http.Header) {
	set := func(g *prometheus.GaugeVec, header string) {
		n, err := strconv.ParseUint(strings.TrimSpace(h.Get(header)), 10, 32)
		if err == nil {
			g.WithLabelValues(account).Set(float64(n))
		}
	}
	set(m.limit, "RateLimit-Limit")
	set(m.remaining, "RateLimit-Remaining")
}

func (m *metrics) forget(account string) {
	m.limit.DeleteLabelValues(account)
	m.remaining.DeleteLabelValues(account)
	m.rejected.DeleteLabelValues(account)
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.errors, m.limit, m.remaining, m.rejected}
}

func (m *metrics) describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

func (m *metrics) collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}
