package runner

import (
	"errors"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"server_rental_exporter/internal/rentalapi"
)

// stateLogger logs changes of a collector's state, not repetitions: each cause of
// failure once until the collector recovers, each invalid item's cause once until it
// is gone. It is used by one goroutine at a time.
type stateLogger struct {
	logger   log.Logger
	failures map[rentalapi.Reason]bool     // logged since the last success
	invalid  map[rentalapi.FieldError]bool // causes of the last good response
}

// record logs what a fetch changed.
func (l *stateLogger) record(invalid rentalapi.Invalid, err error) {
	if err != nil {
		l.recordFailure(err)
		return
	}
	if len(l.failures) > 0 {
		level.Info(l.logger).Log("msg", "collector recovered")
		l.failures = nil
	}
	known := l.invalid
	l.invalid = make(map[rentalapi.FieldError]bool, len(invalid.Causes))
	for _, c := range invalid.Causes {
		l.invalid[c.FieldError] = true
		if !known[c.FieldError] {
			level.Warn(l.logger).Log("msg", "invalid item", "item", c.Item, "field", c.Field, "problem", c.Problem, "items", invalid.Items)
		}
	}
	if len(known) > 0 && len(l.invalid) == 0 {
		level.Info(l.logger).Log("msg", "all items valid again")
	}
}

func (l *stateLogger) recordFailure(err error) {
	var failure *rentalapi.Error
	var reason rentalapi.Reason
	if errors.As(err, &failure) {
		reason = failure.Reason
	}
	if l.failures[reason] {
		level.Debug(l.logger).Log("msg", "collector still failing", "err", err)
		return
	}
	if l.failures == nil {
		l.failures = map[rentalapi.Reason]bool{}
	}
	l.failures[reason] = true
	level.Error(l.logger).Log("msg", "collector failed", "err", err)
}
