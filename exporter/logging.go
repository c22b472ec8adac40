package exporter

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	slgk "github.com/tjhop/slog-gokit"

	"github.com/server-rental-exporter/server_rental_exporter/config"
)

// newLogger returns a logger that writes lines of at least a level to w, in logfmt or json.
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

// printFaults prints each line of an error that keeps the program from starting, as text or as JSON.
func (o *options) printFaults(w io.Writer, err error) {
	if o.logFormat != "json" {
		fmt.Fprintln(w, err)
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		level.Error(newLogger(w, "error", "json")).Log("msg", "exporter stopped", "err", line)
	}
}

// maxLogWait is the longest time for which a log that nobody reads holds up anything.
const maxLogWait = time.Second

// lineWriter writes lines one after the other. While one of them cannot be written, the others are
// dropped and counted.
type lineWriter struct {
	w       io.Writer
	dropped func(n int64) // writes to w that n lines were dropped

	turn  chan struct{} // has a value while a line is written
	stuck atomic.Bool   // whether a line takes longer than maxLogWait
	lost  atomic.Int64  // number of lines dropped since the last one that was written
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

// newSlogger returns a logger for libraries that use slog. It drops the time and the caller of a
// record: a line has its own time, and no caller.
func newSlogger(logger log.Logger) *slog.Logger {
	return slog.New(slgk.NewGoKitHandler(log.LoggerFunc(func(pairs ...any) error {
		var line []any
		for pair := range slices.Chunk(pairs, 2) {
			if pair[0] != slog.TimeKey && pair[0] != "caller" {
				line = append(line, pair...)
			}
		}
		return logger.Log(line...)
	}), slog.LevelDebug))
}

// serverWriter receives the lines of http.Server, which clients cause, or a certificate, a key or a web
// configuration file that changed since the start: that is an error.
type serverWriter struct {
	logger    log.Logger
	webConfig string // path; empty without TLS
}

// Write implements io.Writer.
func (w serverWriter) Write(line []byte) (int, error) {
	level.Debug(w.logger).Log("msg", string(bytes.TrimSpace(line)))
	for _, message := range config.YAMLErrors(toolkit.Validate(w.webConfig)) {
		level.Error(w.logger).Log("msg", "cannot serve TLS", "err", message)
	}
	return len(line), nil
}
