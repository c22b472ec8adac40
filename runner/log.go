package runner

import (
	"slices"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"

	"github.com/server-rental-exporter/server_rental_exporter/internal/rentalapi"
)

// stateLogger logs changes of a collector's state, not repetitions: each cause of
// failure once until the collector recovers, each invalid item's cause once until it
// is gone.
type stateLogger struct {
	logger   log.Logger
	failures []rentalapi.Reason     // logged since the last success
	invalid  []rentalapi.FieldError // causes in the last good response
}

// recordSuccess logs what a fetch that succeeded changed.
func (l *stateLogger) recordSuccess(invalid rentalapi.Invalid) {
	if len(l.failures) > 0 {
		level.Info(l.logger).Log("msg", "collector recovered")
		l.failures = nil
	}
	for _, c := range invalid.Causes {
		if !slices.ContainsFunc(l.invalid, c.IsLike) {
			level.Warn(l.logger).Log("msg", "invalid item", "item", c.Item, "field", c.Field, "problem", c.Problem, "items", invalid.Items)
		}
	}
	if len(l.invalid) > 0 && len(invalid.Causes) == 0 {
		level.Info(l.logger).Log("msg", "all items valid again")
	}
	l.invalid = invalid.Causes
}

// recordFailure logs why a fetch failed.
func (l *stateLogger) recordFailure(err error) {
	failure, logger, message := rentalapi.ErrorOf(err), level.Error(l.logger), "collector failed"
	if slices.Contains(l.failures, failure.Reason) {
		logger, message = level.Debug(l.logger), "collector still failing"
	} else {
		l.failures = append(l.failures, failure.Reason)
	}
	line := []any{"msg", message, "err", err}
	if failure.Hint != "" {
		line = append(line, "hint", failure.Hint)
	}
	logger.Log(line...)
}
