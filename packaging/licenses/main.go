// Licenses prints the licences and notices of everything that the released programs are linked
// with, each text once.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// systems are the operating systems of a release. A program is linked with other modules on each.
var systems = []string{"linux", "darwin", "windows", "freebsd"}

const standardLibrary = "Go's standard library (https://go.dev)"

func main() {
	directories := modules()
	var order []string             // texts
	users := map[string][]string{} // modules by text
	for _, name := range slices.Sorted(maps.Keys(directories)) {
		for _, text := range licences(directories[name]) {
			if users[text] == nil {
				order = append(order, text)
			}
			users[text] = append(users[text], name)
		}
	}
	fmt.Println("server_rental_exporter is linked with the following. Its own licence is in LICENSE.")
	for _, text := range order {
		fmt.Printf("\n%s\n  %s\n%s\n\n%s", strings.Repeat("=", 80), strings.Join(users[text], "\n  "), strings.Repeat("-", 80), text)
	}
}

// modules returns the directories of the standard library and of the modules of all systems, by name.
func modules() map[string]string {
	directories := map[string]string{standardLibrary: strings.TrimSpace(goCommand("", "env", "GOROOT"))}
	for _, system := range systems {
		list := goCommand(system, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", ".")
		for line := range strings.Lines(list) {
			if name, dir, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
				directories[name] = dir
			}
		}
	}
	return directories
}

// goCommand returns the output of a go command for a system.
func goCommand(system string, args ...string) string {
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+system)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		log.Fatalf("go %s: %v", args[0], err)
	}
	return string(out)
}

// licences returns the licences and notices in a directory, at least one.
func licences(dir string) (texts []string) {
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			log.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				log.Fatal(err)
			}
			texts = append(texts, strings.ReplaceAll(string(text), "\r", ""))
		}
	}
	if texts == nil {
		log.Fatalf("%s: no licence", dir)
	}
	return texts
}
