// Writes the dashboards to the working directory. Names and descriptions of metrics are those of the
// exporter's definitions.
package main

import (
	"log"
	"os"
)

//go:generate go run .

func main() {
	for _, b := range boards() {
		if err := os.WriteFile(b.file(), b.json(), 0o644); err != nil { //nolint:gosec // everybody may read them
			log.Fatal(err)
		}
	}
}

func boards() []board { return []board{stock(), onePlan(), accounts(), status()} }
