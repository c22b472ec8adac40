// Package config says what an operator may set, on the command line, in the
// environment and in the YAML file, and whether it is sound.
//
// Every fault is collected with the place it was found at, so that one run
// shows all of them. No fault, and no error of this package, contains a secret:
// values are repeated only where a secret cannot reasonably stand, which
// excludes the paths of secret files, since a token is easily pasted there.
package config

import (
	"fmt"
	"io"
	"net/url"
	"time"

	promconfig "github.com/prometheus/common/config"
)

// CollectorSpec is what the configuration has to know of one collector.
type CollectorSpec struct {
	// Name is the collector's name in flags and in the file.
	Name string
	// Help says what it exports, for example "plan stock and prices".
	Help string
	// Account is set where it is asked once for each account, with its token.
	Account bool
	// Interval and MaxAge are the defaults.
	Interval, MaxAge time.Duration
	// MinInterval is how long the API itself caches the answer; 0 is never.
	MinInterval time.Duration
	// Requests is the least number of requests one refresh makes.
	Requests int
	// MaxRequests is the usual most; 0 means the same as Requests.
	MaxRequests int
}

// Config is a sound configuration.
type Config struct {
	API      API
	Accounts []Account
	// Collectors has an entry for every CollectorSpec, enabled or not.
	Collectors map[string]Collector
}

// API says where the rental API is and how to ask it.
type API struct {
	// BaseURL has no trailing slash. It is nil in a demo, which brings its own.
	BaseURL *url.URL
	// Timeout bounds one request.
	Timeout time.Duration
	// HTTP never carries the API's own credentials. Its follow_redirects may be
	// given but means nothing: redirects are never followed, because a token
	// must not leave the base URL's origin.
	HTTP      promconfig.HTTPClientConfig
	RateLimit RateLimit
}

// RateLimit is how many requests per minute may be made.
type RateLimit struct {
	// Public is for all requests without a token together.
	Public int
	// Account is for each token.
	Account int
}

// Account is one account at the provider and where its token is.
type Account struct {
	// Name is unique and becomes the label `account`.
	Name string
	// TokenFile is where the token is read from; empty where Token is set.
	TokenFile string
	// Token comes from the environment only.
	Token promconfig.Secret
}

// Format prints the name alone, whatever the verb: fmt, and logging through
// it, would otherwise write the token out.
func (a Account) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.Name) }

// Collector is how one collector runs.
type Collector struct {
	Enabled bool
	// Interval is the time between two fetches.
	Interval time.Duration
	// MaxAge is how long the last good answer is kept; at least Interval.
	MaxAge time.Duration
}

// ScopeRate is what the enabled collectors ask for in one rate limit's scope.
type ScopeRate struct {
	// Account is the account's name, empty for the public scope.
	Account string
	// PerMinute and MaxPerMinute are the least and the usual most requests.
	PerMinute, MaxPerMinute float64
	// Limit is the configured rate limit.
	Limit int
}

// RequestRates is what the configuration costs in requests per minute: the public
// scope first, then each account in order.
func (c *Config) RequestRates(specs []CollectorSpec) []ScopeRate {
	public, account := c.scopes(specs)
	costs := []ScopeRate{public}
	for _, a := range c.Accounts {
		account.Account = a.Name
		costs = append(costs, account)
	}
	return costs
}

// scopes is the cost of the public scope and that of any one account.
func (c *Config) scopes(specs []CollectorSpec) (public, account ScopeRate) {
	public.Limit, account.Limit = c.API.RateLimit.Public, c.API.RateLimit.Account
	for _, s := range specs {
		collector := c.Collectors[s.Name]
		if !collector.Enabled || collector.Interval <= 0 {
			continue
		}
		scope := &public
		if s.Account {
			scope = &account
		}
		perMinute := float64(time.Minute) / float64(collector.Interval)
		scope.PerMinute += float64(s.Requests) * perMinute
		scope.MaxPerMinute += float64(max(s.Requests, s.MaxRequests)) * perMinute
	}
	return public, account
}
