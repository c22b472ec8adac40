package main

import (
	"os"
	"testing"
)

// TestCommitted checks that the committed dashboards are those that the program writes.
func TestCommitted(t *testing.T) {
	for _, b := range boards() {
		if got, err := os.ReadFile(b.file()); err != nil || string(got) != string(b.json()) {
			t.Errorf("%s is behind (%v); run: go generate", b.file(), err)
		}
	}
}
