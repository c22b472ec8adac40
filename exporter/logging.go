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

// newLogger returns a logger that writes lines of at least a level to w, in logfmt or json, and a function
// that waits until all are written, or nobody reads them.
func newLogger(w io.Writer, minLevel, format string) (logger log.Logger, flush func()) {
	newFormat := log.NewLogfmtLogger
	if format == "json" {
		newFormat = log.NewJSONLogger
	}
	q := &logQueue{lines: make(chan []any, maxQueued), written: make(chan struct{})}
	go q.write(newFormat(w))
	logger = log.With(q, "ts", log.DefaultTimestampUTC)
	return level.NewFilter(logger, level.Allow(level.ParseDefault(minLevel, level.InfoValue()))), q.flush
}

// printFaults prints each line of an error, if there is one, as text or as JSON.
func (o *options) printFaults(w io.Writer, err error) {
	if err == nil {
		return
	}
	logger := level.Error(log.With(log.NewJSONLogger(w), "ts", log.DefaultTimestampUTC))
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if o.logFormat == "json" {
			logger.Log("msg", "exporter stopped", "err", line)
		} else {
			fmt.Fprintln(w, line)
		}
	}
}

const (
	maxQueued  = 4096        // lines that wait to be written
	maxLogWait = time.Second // the longest time for which a log that nobody reads holds up the end of the process
)

// logQueue writes lines in the background, so that logging waits for nobody, also under a lock. While the
// queue is full, lines are dropped and counted.
type logQueue struct {
	lines   chan []any // nil is the last one
	lost    atomic.Int64
	written chan struct{} // closed after the last one
}

// Log implements log.Logger.
func (q *logQueue) Log(line ...any) error {
	select {
	case q.lines <- slices.Clone(line):
	default:
		q.lost.Add(1)
	}
	return nil
}

// write writes lines up to the last one.
func (q *logQueue) write(to log.Logger) {
	defer close(q.written)
	for line := range q.lines {
		if n := q.lost.Swap(0); n > 0 {
			level.Warn(log.With(to, "ts", log.DefaultTimestampUTC)).Log("msg", "log lines dropped", "lines", n)
		}
		if line == nil {
			return
		}
		to.Log(line...)
	}
}

func (q *logQueue) flush() {
	go func() { q.lines <- nil }() // the queue may be full
	select {
	case <-q.written:
	case <-time.After(maxLogWait):
	}
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
