package main

import (
	"os"
	"testing"
)

// TestCommitted checks that the committed dashboards are those that the program writes.
func TestCommitted(t *testing.T) {
	for _, f := range all() {
		want, err := f.text()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(*f.Uid + ".json")
		if err != nil || string(got) != string(want) {
			t.Errorf("%s.json: is behind (%v); run: go generate", *f.Uid, err)
		}
	}
}
