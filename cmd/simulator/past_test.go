package main

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/simulator/simtest"
)

var end = time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)

// generate returns the last moment of a history.
func generate(t *testing.T) simtest.Exposition {
	t.Helper()
	var out strings.Builder
	if err := writePast(&out, end, time.Hour); err != nil {
		t.Fatal(err)
	}
	simtest.AssertNoSecrets(t, "history", out.String())
	var page strings.Builder
	for line := range strings.Lines(out.String()) {
		if sample, found := strings.CutSuffix(line, fmt.Sprintf(" %d\n", end.Unix())); found {
			page.WriteString(target.ReplaceAllString(sample, "{") + "\n")
		}
	}
	return simtest.ParseExposition(t, page.String(), "text/plain")
}

// target is the labels that all series have.
var target = regexp.MustCompile(`\{instance="exporter:10170",job="server_rental",?`)

// TestDemoContinues compares the last moment of a history with a demo that is started then.
func TestDemoContinues(t *testing.T) {
	var demo map[string]float64
	synctest.Test(t, func(t *testing.T) { // stops the clock
		time.Sleep(time.Until(end))
		var out, log bytes.Buffer
		if status := exporter.Main(t.Context(), exporter.Environment{
			Args: []string{"--demo", "--once"}, Stdout: &out, Stderr: &log,
		}); status != 0 {
			t.Fatalf("exit status %d: %s", status, log.String())
		}
		demo = continued(simtest.ParseExposition(t, out.String(), "text/plain"))
	})
	if len(demo) < 400 {
		t.Errorf("a demo has only %d series", len(demo))
	}
	last := generate(t)
	simtest.AssertEqual(t, "the same again", generate(t), last)
	simtest.AssertEqual(t, "data of the provider", continued(last), demo)
}

// continued returns the provider's data, without what depends on when the exporter started or
// fetched, or on the incidents before.
func continued(e simtest.Exposition) map[string]float64 {
	data, changing := e.Data(), regexp.MustCompile("_restock|_sellout|_hit|catalog_generated|status_updated|status_since")
	maps.DeleteFunc(data, func(series string, _ float64) bool { return changing.MatchString(series) })
	return data
}
