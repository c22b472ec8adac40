package exporter

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-kit/log/level"
)

// TestLogEscapes logs a text that would turn around the rest of its line.
func TestLogEscapes(t *testing.T) {
	for format, want := range map[string]string{
		"logfmt": `msg=in\u202ejected err=café\u2066`,
		"json":   `"err":"café\\u2066","level":"warn","msg":"in\\u202ejected"`,
	} {
		var out bytes.Buffer
		level.Warn(newLogger(&out, "info", format)).Log("msg", "in\u202ejected", "err", errors.New("café\u2066"))
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %s, want %s in it", format, out.String(), want)
		}
	}
}
