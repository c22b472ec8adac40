package runner

import (
	"context"
	"log/slog"
	"slices"

	"server_rental_exporter/internal/rentalapi"
)

// pendingHandler keeps what is logged while a lock is held; see Runner.unlock.
type pendingHandler struct {
	slog.Handler
	runner *Runner
}

// Handle implements slog.Handler.
func (h pendingHandler) Handle(ctx context.Context, record slog.Record) error {
	h.runner.pending = append(h.runner.pending, func() { _ = h.Handler.Handle(ctx, record) })
	return nil
}

// WithAttrs implements slog.Handler.
func (h pendingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return pendingHandler{h.Handler.WithAttrs(attrs), h.runner}
}

// unlock releases mu, and then writes what was logged while it was held: a log that blocks holds
// up its own collector only.
func (r *Runner) unlock() {
	lines := r.pending
	r.pending = nil
	r.mu.Unlock()
	for _, write := range lines {
		write()
	}
}

// stateLogger logs changes of a collector's state, not repetitions: each cause of
// failure once until the collector recovers, each invalid item's cause once until it
// is gone.
type stateLogger struct {
	logger   *slog.Logger
	failures []rentalapi.Reason // logged since the last success
	invalid  []rentalapi.Cause  // of the last good response
}

// recordSuccess logs what a fetch that succeeded changed.
func (l *stateLogger) recordSuccess(invalid rentalapi.Invalid) {
	if len(l.failures) > 0 {
		l.logger.Info("collector recovered")
		l.failures = nil
	}
	for _, c := range invalid.Causes {
		if !slices.ContainsFunc(l.invalid, func(known rentalapi.Cause) bool { return known.FieldError == c.FieldError }) {
			l.logger.Warn("invalid item", "item", c.Item, "field", c.Field, "problem", c.Problem, "items", invalid.Items)
		}
	}
	if len(l.invalid) > 0 && len(invalid.Causes) == 0 {
		l.logger.Info("all items valid again")
	}
	l.invalid = invalid.Causes
}

// recordFailure logs why a fetch failed.
func (l *stateLogger) recordFailure(err error) {
	reason := reasonOf(err)
	if slices.Contains(l.failures, reason) {
		l.logger.Debug("collector still failing", "err", err)
		return
	}
	l.failures = append(l.failures, reason)
	l.logger.Error("collector failed", "err", err)
}
