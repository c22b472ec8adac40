package exporter

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
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
	logger = log.With(printable{logger}, "ts", log.DefaultTimestampUTC)
	return level.NewFilter(logger, level.Allow(level.ParseDefault(minLevel, level.InfoValue())))
}

// newSlogger returns a logger for libraries that use slog. It filters nothing:
// logger does.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(plain{slgk.NewGoKitHandler(logger, slog.LevelDebug)})
}

// plain drops the time and the caller of a record: logger adds its own time, and no caller.
type plain struct{ slog.Handler }

// Handle implements slog.Handler.
func (h plain) Handle(ctx context.Context, r slog.Record) error {
	r.Time, r.PC = time.Time{}, 0
	return h.Handler.Handle(ctx, r)
}

// hidden is what logfmt and JSON let through although it does not print: a text of the
// provider could change the direction of the line around it.
var hidden = regexp.MustCompile(`[^\x00-\x7f\pL\pM\pN\pP\pS]`)

// printable escapes what is hidden.
type printable struct{ log.Logger }

// Log implements log.Logger.
func (p printable) Log(keyvals ...any) error {
	keyvals = slices.Clone(keyvals)
	for i := 1; i < len(keyvals); i += 2 {
		if text := fmt.Sprint(keyvals[i]); hidden.MatchString(text) {
			keyvals[i] = hidden.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("\\u%04x", []rune(s)[0]) })
		}
	}
	return p.Logger.Log(keyvals...)
}
