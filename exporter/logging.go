package exporter

import (
	"context"
	"io"
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
	logger = log.With(logger, "ts", log.DefaultTimestampUTC)
	return level.NewFilter(logger, level.Allow(level.ParseDefault(minLevel, level.InfoValue())))
}

// newSlogger returns a logger for libraries that use slog. It filters nothing: logger does.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(slogHandler{slgk.NewGoKitHandler(logger, slog.LevelDebug)})
}

// slogHandler drops the time and the caller of a record: a line has its own time, and no caller.
type slogHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h slogHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Time, r.PC = time.Time{}, 0
	return h.Handler.Handle(ctx, r)
}
