package main

import (
	"bytes"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/server-rental-exporter/server_rental_exporter/exporter"
	"github.com/server-rental-exporter/server_rental_exporter/internal/simulator/simtest"
)

var end = time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)

func generate(t *testing.T, length time.Duration) []byte {
	t.Helper()
	var b bytes.Buffer
	err := writePast(&b, end, length)
	if err != nil {
		t.Fatal(err)
	}
	simtest.AssertNoSecrets(t, "history", b.String())
	return b.Bytes()
}

// parse returns the moments of a history, in Unix seconds, and the values of the last one.
func parse(t *testing.T, text []byte) (moments []string, last simtest.Exposition) {
	t.Helper()
	rest, complete := strings.CutSuffix(string(text), "# EOF\n")
	if !complete {
		t.Error("the end is missing")
	}
	var lines strings.Builder // samples of the last moment
	for line := range strings.Lines(rest) {
		i := strings.LastIndexByte(line, ' ')
		if at := strings.TrimSpace(line[i:]); len(moments) == 0 || moments[len(moments)-1] != at {
			moments = append(moments, at)
			lines.Reset()
		}
		lines.WriteString(target.ReplaceAllString(line[:i], "{") + "\n")
	}
	return moments, simtest.ParseExposition(t, lines.String(), "text/plain")
}

// target is the labels that all series have.
var target = regexp.MustCompile(`\{instance="exporter:10170",job="server_rental",?`)

// TestPast generates a day, in which something of all that changes must have changed.
func TestPast(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	got, last := parse(t, generate(t, 24*time.Hour))
	var want []string
	for at := end.Add(-24 * time.Hour); !at.After(end); at = at.Add(interval) {
		want = append(want, strconv.FormatInt(at.Unix(), 10))
	}
	simtest.AssertEqual(t, "moments", got, want)
	for _, name := range []string{
		"plan_restocks", "plan_sellouts", "plan_last_restock", "configuration_restocks", "watch_hits", "watch_last_hit", "account_funded_until",
	} {
		sum := 0.0
		for _, v := range last.WithPrefix("server_rental_" + name) {
			sum += v
		}
		if sum == 0 {
			t.Errorf("%s: nothing, or 0", name)
		}
	}
}

// TestDemoContinues compares the last moment of a history with a demo that is started then.
func TestDemoContinues(t *testing.T) {
	var demo map[string]float64
	synctest.Test(t, func(t *testing.T) { // stops the clock
		time.Sleep(time.Until(end))
		var out, log bytes.Buffer
		if status := exporter.Main(t.Context(), exporter.Environment{
			Args: []string{"--demo", "--once"}, LookupEnv: func(string) (string, bool) { return "", false }, Stdout: &out, Stderr: &log,
		}); status != 0 {
			t.Fatalf("exit status %d: %s", status, log.String())
		}
		demo = continued(simtest.ParseExposition(t, out.String(), "text/plain"))
	})
	if len(demo) < 400 {
		t.Errorf("a demo has only %d series", len(demo))
	}
	_, last := parse(t, generate(t, time.Hour))
	_, again := parse(t, generate(t, time.Hour))
	simtest.AssertEqual(t, "the same again", again, last)
	simtest.AssertEqual(t, "data of the provider", continued(last), demo)
}

// continued returns the provider's data, without what depends on when the exporter started or
// fetched, or on the incidents before.
func continued(e simtest.Exposition) map[string]float64 {
	data, changing := e.Data(), regexp.MustCompile("_restock|_sellout|_hit|catalog_generated|status_updated|status_since")
	maps.DeleteFunc(data, func(series string, _ float64) bool { return changing.MatchString(series) })
	return data
}
