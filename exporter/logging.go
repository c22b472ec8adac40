package exporter

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	slgk "github.com/tjhop/slog-gokit"
)

// newLogger logs to w what is at least as severe as minLevel, in logfmt or json.
func newLogger(w io.Writer, minLevel, format string) log.Logger {
	newFormat := log.NewLogfmtLogger
	if format == "json" {
		newFormat = log.NewJSONLogger
	}
	withTime := func(w io.Writer) log.Logger { return log.With(newFormat(w), "ts", log.DefaultTimestampUTC) }
	lines := &lineWriter{w: w, turn: make(chan struct{}, 1), dropped: func(n int64) {
		level.Warn(withTime(w)).Log("msg", "log lines dropped", "lines", n)
	}}
	return level.NewFilter(withTime(lines), level.Allow(level.ParseDefault(minLevel, level.InfoValue())))
}

// maxLogWait is how long a line waits until it is written. A log that nobody reads holds up
// nothing for longer.
const maxLogWait = time.Second

// lineWriter writes lines one after the other. While one of them cannot be written, the others are
// dropped and counted.
type lineWriter struct {
	w       io.Writer
	dropped func(n int64) // writes to w how many lines were dropped

	turn  chan struct{} // has a value while a line is written
	stuck atomic.Bool   // whether that takes longer than maxLogWait
	lost  atomic.Int64  // lines dropped since the last one that was written
}

// Write implements io.Writer. It never fails: nothing could be done about it.
func (l *lineWriter) Write(line []byte) (int, error) {
	timer := time.NewTimer(maxLogWait)
	defer timer.Stop()
	if l.stuck.Load() {
		timer.Reset(0)
	}
	select {
	case l.turn <- struct{}{}:
	case <-timer.C:
		l.lost.Add(1)
		return len(line), nil
	}
	copied, written := bytes.Clone(line), make(chan struct{})
	go func() {
		if n := l.lost.Swap(0); n > 0 {
			l.dropped(n)
		}
		_, _ = l.w.Write(copied)
		l.stuck.Store(false)
		<-l.turn
		close(written)
	}()
	select {
	case <-written:
	case <-timer.C:
		l.stuck.Store(true)
	}
	return len(line), nil
}

// newSlogger returns a logger for libraries that use slog. It filters nothing: logger does.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(slogHandler{slgk.NewGoKitHandler(logger, slog.LevelDebug)})
}

// libraryWriter is where the standard logger writes. It repeats nothing: net/http logs what the
// provider sent.
type libraryWriter struct{ logger log.Logger }

// Write implements io.Writer.
func (w libraryWriter) Write(line []byte) (int, error) {
	level.Debug(w.logger).Log("msg", "message of a library not shown: it might repeat private data")
	return len(line), nil
}

// slogHandler drops the time and the caller of a record: a line has its own time, and no caller.
type slogHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h slogHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Time, r.PC = time.Time{}, 0
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h slogHandler) WithGroup(name string) slog.Handler {
	return slogHandler{h.Handler.WithGroup(name)}
}
