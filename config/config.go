// Package config defines the command-line flags, environment variables and YAML file that
// configure the exporter, and validates them.
//
// Loading reports all errors at once. A message names files, and repeats a value only if it cannot
// reasonably be a secret, such as a token that was pasted in place of a path.
package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/server-rental-exporter/server_rental_exporter/collector"
)

// Config is a validated configuration.
type Config struct {
	API          API                         `yaml:"api"`
	Accounts     []Account                   `yaml:"accounts"`
	AccountFiles []string                    `yaml:"account_files"` // patterns of the files of more accounts
	Watches      []collector.Watch           `yaml:"watches"`
	Collectors   map[string]collector.Timing `yaml:"-"` // the enabled ones
	Shard        Shard                       `yaml:"-"`
}

// API describes the rental API and how to send requests to it.
type API struct {
	Address     string        `yaml:"base_url"` // text of the file
	BaseURL     *url.URL      `yaml:"-"`        // ends in /api/v1; nil with --demo
	TimeoutText string        `yaml:"timeout"`  // text of the file, or the default
	Timeout     time.Duration `yaml:"-"`        // bound on one request: 1 ms to 5 minutes
	HTTP        HTTP          `yaml:"http"`     // never contains credentials of the API
	RateLimit   struct {      // maximum numbers of requests in 60 seconds
		Public  integer `yaml:"public"`  // all requests without a token together: 5 to 59
		Account integer `yaml:"account"` // requests with each token: 5 to 120
	} `yaml:"rate_limit"`
}

// Account is an account at the provider. Either TokenFile or Token is set.
type Account struct {
	Name      string            `yaml:"name"`       // unique, and the value of the label account
	TokenFile string            `yaml:"token_file"` // path of the file that contains the token
	Token     promconfig.Secret `yaml:"-"`          // set by the environment only
	found     bool              // by a pattern
}

// Format implements fmt.Formatter. It prints only the name: verbs such as %x would reveal the token.
func (a Account) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.Name) }

// Shard is the part of the accounts that this process exports. Shard 0 also has the public
// collectors and the watches.
type Shard struct {
	Index int // 0 to Total-1
	Total int // 1 to 1000
}

// ShardOf returns the index of the shard that exports an account, by rendezvous hashing of
// its name: from N to N+1 shards, one account in N+1 moves.
func ShardOf(account string, total int) int {
	best, highest := 0, uint64(0)
	for i := range total {
		sum := sha256.Sum256([]byte(strconv.Itoa(i) + " " + account))
		if weight := binary.BigEndian.Uint64(sum[:]); weight >= highest {
			best, highest = i, weight
		}
	}
	return best
}
