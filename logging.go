package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	slgk "github.com/tjhop/slog-gokit"
)

// newLogger logs to w what is at least as severe as lowest, in logfmt or json.
func newLogger(w io.Writer, lowest, format string) log.Logger {
	w = log.NewSyncWriter(w)
	logger := log.NewLogfmtLogger(w)
	if format == "json" {
		logger = log.NewJSONLogger(w)
	}
	logger = level.NewFilter(logger, level.Allow(level.ParseDefault(lowest, level.InfoValue())))
	return log.With(logger, "ts", log.DefaultTimestampUTC)
}

// newSlogger lets libraries that log with slog write into the same log, which
// decides what is severe enough.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(untimed{slgk.NewGoKitHandler(logger, slog.LevelDebug)})
}

// untimed drops the time of a record: the log stamps it itself.
type untimed struct{ slog.Handler }

// Handle implements slog.Handler.
func (h untimed) Handle(ctx context.Context, r slog.Record) error {
	r.Time = time.Time{}
	return h.Handler.Handle(ctx, r)
}
