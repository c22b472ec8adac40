package exporter

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/go-kit/log/level"

	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

// TestLog logs a text that would begin a line, or change the terminal, and a message of a library.
func TestLog(t *testing.T) {
	for format, want := range map[string]string{
		"logfmt": `ts=T level=warn msg="in\njected\u001b"` + "\nts=T level=info msg=Listening address=:1\n",
		"json":   `{"level":"warn","msg":"in\njected\u001b","ts":"T"}` + "\n" + `{"address":":1","level":"info","msg":"Listening","ts":"T"}` + "\n",
	} {
		var out bytes.Buffer
		logger := newLogger(&out, "info", format)
		level.Warn(logger).Log("msg", "in\njected\x1b")
		newSlogger(logger).Info("Listening", "address", ":1")
		simtest.AssertEqual(t, format, regexp.MustCompile(`20\d\d-[0-9T:.-]+Z`).ReplaceAllString(out.String(), "T"), want)
	}
}
