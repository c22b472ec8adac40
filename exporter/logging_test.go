package exporter

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/go-kit/log/level"

	"server_rental_exporter/internal/simulator/simtest"
)

// TestLog logs a text that would turn around the rest of its line, and a message of a library.
func TestLog(t *testing.T) {
	for format, want := range map[string]string{
		"logfmt": "ts=T level=warn msg=in\\u202ejected err=café\\u2066\nts=T level=info msg=Listening address=:1\n",
		"json": `{"err":"café\\u2066","level":"warn","msg":"in\\u202ejected","ts":"T"}` + "\n" +
			`{"address":":1","level":"info","msg":"Listening","ts":"T"}` + "\n",
	} {
		var out bytes.Buffer
		logger := newLogger(&out, "info", format)
		level.Warn(logger).Log("msg", "in\u202ejected", "err", errors.New("café\u2066"))
		newSlogger(logger).Info("Listening", "address", ":1")
		simtest.AssertEqual(t, format, regexp.MustCompile(`20\d\d-[0-9T:.-]+Z`).ReplaceAllString(out.String(), "T"), want)
	}
}
