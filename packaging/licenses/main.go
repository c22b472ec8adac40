// Licenses prints the licences and notices of everything that the released programs are linked
// with, each text once.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// systems are the operating systems of a release. A program is linked with other modules on each.
var systems = []string{"linux", "darwin", "windows", "freebsd"}

// module is a Go module, and the directory that has its files.
type module struct{ name, dir string }

func main() {
	linked, err := modules()
	if err != nil {
		log.Fatal(err)
	}
	var order []string             // texts
	users := map[string][]string{} // modules by text
	for _, m := range linked {
		texts, err := m.texts()
		if err != nil {
			log.Fatal(err)
		}
		for _, text := range texts {
			if users[text] == nil {
				order = append(order, text)
			}
			users[text] = append(users[text], m.name)
		}
	}
	fmt.Println("server_rental_exporter is linked with the following. Its own licence is in LICENSE.")
	for _, text := range order {
		fmt.Printf("\n%s\n  %s\n%s\n\n%s", strings.Repeat("=", 80), strings.Join(users[text], "\n  "), strings.Repeat("-", 80), text)
	}
}

// modules returns the standard library and the modules of all systems, by name.
func modules() ([]module, error) {
	root, err := goCommand("", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var linked []module
	for _, system := range systems {
		list, err := goCommand(system, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", ".")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			if name, dir, found := strings.Cut(strings.TrimSpace(line), "\t"); found {
				linked = append(linked, module{name, dir})
			}
		}
	}
	slices.SortFunc(linked, func(a, b module) int { return cmp.Compare(a.name, b.name) })
	return append([]module{{"Go's standard library (https://go.dev)", strings.TrimSpace(root)}}, slices.Compact(linked)...), nil
}

// goCommand returns the output of a go command for a system.
func goCommand(system string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+system)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// texts returns the licences and notices of a module, at least one.
func (m module) texts() ([]string, error) {
	var texts []string
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"} {
		files, err := filepath.Glob(filepath.Join(m.dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			texts = append(texts, strings.ReplaceAll(string(text), "\r", ""))
		}
	}
	if texts == nil {
		return nil, fmt.Errorf("%s: no licence in %s", m.name, m.dir)
	}
	return texts, nil
}
