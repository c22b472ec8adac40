package exporter

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-kit/log/level"

	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

// TestLog logs a text that would begin a line, or change the terminal, and a message of a library.
func TestLog(t *testing.T) {
	for format, want := range map[string]string{
		"logfmt": `ts=T level=warn msg="in\njected\u001b"` + "\nts=T level=info msg=Listening address=:1\n",
		"json":   `{"level":"warn","msg":"in\njected\u001b","ts":"T"}` + "\n" + `{"address":":1","level":"info","msg":"Listening","ts":"T"}` + "\n",
	} {
		var out bytes.Buffer
		logger, flush := newLogger(&out, "info", format)
		level.Warn(logger).Log("msg", "in\njected\x1b")
		newSlogger(logger).With("address", ":1").Info("Listening")
		flush()
		simtest.AssertEqual(t, format, regexp.MustCompile(`20\d\d-[0-9T:.-]+Z`).ReplaceAllString(out.String(), "T"), want)
	}
}

// blockedWriter blocks until it is released.
type blockedWriter struct {
	bytes.Buffer
	release chan struct{}
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	<-w.release
	return w.Buffer.Write(p)
}

// TestStuckLog has a log that nobody reads for a while: lines wait in the queue, further ones are dropped
// and counted, and the end of the process waits for a second.
func TestStuckLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &blockedWriter{release: make(chan struct{})}
		logger, flush := newLogger(w, "info", "logfmt")
		began := time.Now()
		level.Info(logger).Log("msg", "first")
		synctest.Wait()
		for range maxQueued + 4 {
			level.Info(logger).Log("msg", "a line")
		}
		simtest.AssertEqual(t, "time of logging", time.Since(began), time.Duration(0))
		flush()
		simtest.AssertEqual(t, "time until the end", time.Since(began), maxLogWait)
		close(w.release)
		synctest.Wait()
		got := regexp.MustCompile(`ts=\S+ `).ReplaceAllString(w.String(), "")
		want := "level=info msg=first\nlevel=warn msg=\"log lines dropped\" lines=4\n" + strings.Repeat("level=info msg=\"a line\"\n", maxQueued)
		simtest.AssertEqual(t, "log", got, want)
	})
}
