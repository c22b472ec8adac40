// Writes the dashboards to the working directory, with names and descriptions of metrics as the
// exporter defines them.
package main

import (
	"fmt"
	"os"
)

//go:generate go run .

func main() {
	for _, f := range all() {
		if err := f.write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func all() []file { return []file{stock(), planBoard(), accounts(), status()} }
