// Package config defines the command-line flags, environment variables and YAML
// file that configure the exporter, and validates them.
//
// Loading reports all errors at once, each with its file, line and field.
// No error contains a secret: a message repeats a value only if that value
// cannot reasonably be a secret. Paths of secret files are left out as well,
// because a token is easily pasted there.
package config

import (
	"fmt"
	"io"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"

	"server_rental_exporter/collector"
)

// Config is a validated configuration.
type Config struct {
	API        API                  `yaml:"api"`
	Accounts   []Account            `yaml:"accounts"`
	Collectors map[string]Collector `yaml:"collectors"` // an entry for every resource, enabled or not
	Watches    []collector.Watch    `yaml:"watches"`
	Shard      Shard
}

// API describes the rental API and how to send requests to it.
type API struct {
	BaseURL *url.URL      `yaml:"base_url"` // ends in /api/v1; nil with --demo
	Timeout time.Duration `yaml:"timeout"`  // of one request: 1 ms to 5 minutes
	// HTTP never contains credentials of the API. Its follow_redirects has no
	// effect: redirects are never followed, because a token must not leave the
	// base URL's origin.
	HTTP      promconfig.HTTPClientConfig `yaml:"http"`
	RateLimit RateLimit                   `yaml:"rate_limit"`
}

// RateLimit holds the maximum numbers of requests per minute.
type RateLimit struct {
	Public  int `yaml:"public"`  // of all requests without a token together: 1 to 59
	Account int `yaml:"account"` // with each token: 1 to 120
}

// Account is an account at the provider. Either TokenFile or Token is set.
type Account struct {
	Name      string            `yaml:"name"`       // unique, and the value of the label account
	TokenFile string            `yaml:"token_file"` // path of the file that contains the token
	Token     promconfig.Secret // from the environment only
}

// Format implements fmt.Formatter. It prints only the name, whatever the verb,
// because verbs such as %x would otherwise reveal the token.
func (a Account) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.Name) }

// Collector holds the settings of one collector.
type Collector struct {
	Enabled  bool          `yaml:"enabled"`
	Interval time.Duration `yaml:"interval"` // 1 second, or the API's cache time if that is longer, to 30 days
	MaxAge   time.Duration `yaml:"max_age"`  // Interval to 365 days
}

// Rate is the number of requests that the enabled collectors make in one scope of the rate
// limit: the public API, or each account.
type Rate struct {
	PerMinute, MaxPerMinute float64 // the minimum and the usual maximum
	Limit                   int     // the configured maximum per minute
}

// RequestRate returns the rate of the public API, or of each account.
func (c *Config) RequestRate(resources []collector.Resource, account bool) Rate {
	rate := Rate{Limit: c.API.RateLimit.Public}
	if account {
		rate.Limit = c.API.RateLimit.Account
	}
	for _, r := range resources {
		settings := c.Collectors[r.Name]
		if r.Account == account && settings.Enabled && settings.Interval > 0 {
			perMinute := float64(time.Minute) / float64(settings.Interval)
			rate.PerMinute += float64(r.Requests) * perMinute
			rate.MaxPerMinute += float64(max(r.Requests, r.MaxRequests)) * perMinute
		}
	}
	return rate
}
