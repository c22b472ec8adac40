package exporter

import (
	"context"
	"io"
	stdlog "log"
	"log/slog"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	slgk "github.com/tjhop/slog-gokit"
)

// newLogger logs to w what is at least as severe as minLevel, in logfmt or json.
func newLogger(w io.Writer, minLevel, format string) log.Logger {
	w = log.NewSyncWriter(w)
	logger := log.NewLogfmtLogger(w)
	if format == "json" {
		logger = log.NewJSONLogger(w)
	}
	logger = level.NewFilter(logger, level.Allow(level.ParseDefault(minLevel, level.InfoValue())))
	return log.With(logger, "ts", log.DefaultTimestampUTC)
}

// newSlogger returns a logger for libraries that use slog. It filters nothing:
// logger does.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(untimed{slgk.NewGoKitHandler(logger, slog.LevelDebug)})
}

// untimed drops the time of a record: logger adds its own.
type untimed struct{ slog.Handler }

// Handle implements slog.Handler.
func (h untimed) Handle(ctx context.Context, r slog.Record) error {
	r.Time = time.Time{}
	return h.Handler.Handle(ctx, r)
}

// newErrorLog returns the log of an http.Server, whose errors are caused by clients.
func newErrorLog(logger log.Logger) *stdlog.Logger {
	return slog.NewLogLogger(newSlogger(logger).Handler(), slog.LevelDebug)
}
