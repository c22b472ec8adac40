package simtest

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Update is the flag -update, which rewrites golden and generated files.
var Update = flag.Bool("update", false, "rewrite golden and generated files")

// AssertEqual compares whole values with reflect.DeepEqual. Long ones are shown
// as a diff by line, or by word.
func AssertEqual(t testing.TB, what string, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	g, w := fmt.Sprint(got), fmt.Sprint(want)
	switch {
	case g == w:
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	case len(g)+len(w) < 1000:
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	default:
		t.Errorf("%s (- want, + got):\n%s", what, diff(parts(g), parts(w)))
	}
}

// parts splits the text of a value for diff: a text with lines at their ends, and
// everything else at spaces, such as a map between its elements.
func parts(text string) []string {
	if strings.Contains(text, "\n") {
		return strings.Split(text, "\n")
	}
	return strings.Fields(text)
}

// diff returns the lines that only one of two texts has, each in its order.
func diff(got, want []string) string {
	surplus := map[string]int{}
	for _, line := range got {
		surplus[line]++
	}
	for _, line := range want {
		surplus[line]--
	}
	const maxLines = 60
	var out []string
	collect := func(list []string, sign int, mark string) {
		for _, line := range list {
			if surplus[line]*sign > 0 {
				surplus[line] -= sign
				out = append(out, fmt.Sprintf("%s%.300s", mark, line))
			}
		}
	}
	collect(want, -1, "- ")
	collect(got, 1, "+ ")
	switch {
	case len(out) == 0:
		return "same lines in another order"
	case len(out) > maxLines:
		out = append(out[:maxLines], fmt.Sprintf("and %d more lines", len(out)-maxLines))
	}
	return strings.Join(out, "\n")
}

// Golden compares a text with a file, or rewrites the file if -update is given.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	AssertEqual(t, path+" (-update rewrites it)", got, string(want))
}

// AssertNoSecrets fails the test if a text contains a token, or data of the
// simulated accounts that must not be exposed: e-mail and payment addresses,
// descriptions of transactions, public keys, addresses of servers.
func AssertNoSecrets(t testing.TB, where, text string) {
	t.Helper()
	for _, secret := range []string{
		"secret-", "@customer.example", "bc1q", "bitcoin:", "tron:", "Renewal of node-", "ssh-ed25519 AAAA", "198.18.", "198.19.",
	} {
		if i := strings.Index(text, secret); i >= 0 {
			t.Errorf("%s contains %q: ...%.200q", where, secret, text[max(0, i-80):])
		}
	}
}

// eventuallyTimeout limits Eventually in a test that fails. Public data are fetched once
// a minute.
const eventuallyTimeout = 3 * time.Minute

// Eventually waits in real time until holds returns true. It asks less and less often,
// up to five times a second.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	pause := 5 * time.Millisecond
	for end := time.Now().Add(eventuallyTimeout); !holds(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", eventuallyTimeout, what)
		}
		pause = min(pause+pause/4, 200*time.Millisecond)
	}
}

// WriteFile writes a file that only its owner can read, and returns its path.
func WriteFile(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
