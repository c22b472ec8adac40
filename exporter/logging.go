package exporter

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"

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
	logger = log.With(plain{logger}, "ts", log.DefaultTimestampUTC)
	return level.NewFilter(logger, level.Allow(level.ParseDefault(minLevel, level.InfoValue())))
}

// newSlogger returns a logger for libraries that use slog. It filters nothing:
// logger does.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(slgk.NewGoKitHandler(logger, slog.LevelDebug))
}

// hidden is what logfmt and JSON let through although it does not print: a text of the
// provider could change the direction of the line around it.
var hidden = regexp.MustCompile(`[^\x00-\x7f\pL\pM\pN\pP\pS]`)

// plain escapes what is hidden, and drops the time and the caller that slog adds: a line has
// its own time, and no caller.
type plain struct{ log.Logger }

// Log implements log.Logger.
func (p plain) Log(keyvals ...any) error {
	var kept []any
	for pair := range slices.Chunk(keyvals, 2) {
		if pair[0] == slog.TimeKey || pair[0] == "caller" {
			continue
		}
		if text := fmt.Sprint(pair[1]); hidden.MatchString(text) {
			pair = []any{pair[0], hidden.ReplaceAllStringFunc(text, func(s string) string { return fmt.Sprintf("\\u%04x", []rune(s)[0]) })}
		}
		kept = append(kept, pair...)
	}
	return p.Logger.Log(kept...)
}
