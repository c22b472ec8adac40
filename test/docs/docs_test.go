// Package docs_test checks the repository's documents: that relative links and their
// headings exist, that each command they show is run by a test or says why not, that
// queries give what they promise, and that the log messages are explained.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"server_rental_exporter/internal/simulator/simtest"
	"server_rental_exporter/test/internal/markdown"
	"server_rental_exporter/test/internal/promqltest"
	"server_rental_exporter/test/internal/repo"
)

const root = "../.."

func documents(t *testing.T) map[string]markdown.Document {
	t.Helper()
	all, err := markdown.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d documents found", len(all))
	}
	return all
}

func TestLinks(t *testing.T) {
	all := documents(t)
	for _, doc := range all {
		for _, link := range doc.Links {
			u, err := url.Parse(link)
			if err != nil {
				t.Errorf("%s: link %s: %v", doc.Path, link, err)
				continue
			}
			if u.Scheme != "" {
				continue // of another site
			}
			target := doc.Path
			if u.Path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(doc.Path), u.Path))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s: link %s: no such file", doc.Path, link)
			}
			if u.Fragment != "" && !all[target].Anchor[u.Fragment] {
				t.Errorf("%s: link %s: %s has no such heading", doc.Path, link, target)
			}
		}
	}
}

// TestCommands checks that a comment before each block of shell commands names what tests
// them ("tested: TestName" or "tested: make TARGET", which .ci/run calls), or says why
// nothing does ("not tested: reason").
func TestCommands(t *testing.T) {
	tests := map[string]bool{}
	for _, source := range goFiles(t) {
		for _, match := range testName.FindAllStringSubmatch(source, -1) {
			tests[match[1]] = true
		}
	}
	steps := strings.Split(repo.Read(t, ".ci/run"), "\n")
	for _, doc := range documents(t) {
		for _, block := range doc.Blocks {
			if !slices.Contains([]string{"sh", "bash", "console"}, block.Language) {
				continue
			}
			first, _, _ := strings.Cut(block.Text, "\n")
			if reason, ok := strings.CutPrefix(block.Comment, "not tested: "); ok && reason != "" {
				continue
			}
			names, ok := strings.CutPrefix(block.Comment, "tested: ")
			if !ok {
				t.Errorf("%s: commands %q: no comment says how they are tested", doc.Path, first)
				continue
			}
			for name := range strings.SplitSeq(names, ", ") {
				step := func(line string) bool { return strings.HasPrefix(name, "make ") && strings.Contains(line, name) }
				if !tests[name] && !slices.ContainsFunc(steps, step) {
					t.Errorf("%s: commands %q: neither a test nor a step of .ci/run: %s", doc.Path, first, name)
				}
			}
		}
	}
}

// TestQueries checks that each PromQL example names only metrics and labels that the
// exporter has.
func TestQueries(t *testing.T) {
	known, queries := promqltest.Exported(), 0
	for _, doc := range documents(t) {
		for _, block := range doc.Blocks {
			if block.Language != "promql" {
				continue
			}
			queries++
			if _, err := known.Check(block.Text); err != nil {
				t.Errorf("%s: %s: %v", doc.Path, block.Text, err)
			}
		}
	}
	if queries < 10 {
		t.Errorf("only %d queries found", queries)
	}
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// goFiles returns the Go source of the repository by path.
func goFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := markdown.Walk(root, func(path string) error {
		if filepath.Ext(path) == ".go" {
			all[path] = repo.Read(t, path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// logged returns the messages that a file of Go logs, with their levels, and those of events.
func logged(t *testing.T, path, source string) (messages []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	// text returns a string, of which the last part may be a name.
	text := func(e ast.Expr) string {
		suffix := ""
		if sum, ok := e.(*ast.BinaryExpr); ok {
			e, suffix = sum.X, "server_rental_exporter"
		}
		if literal, ok := e.(*ast.BasicLit); ok {
			value, _ := strconv.Unquote(literal.Value)
			return value + suffix
		}
		return ""
	}
	// name returns the last part of the name of a function or a type.
	name := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			return e.Sel.Name
		case *ast.Ident:
			return e.Name
		}
		return ""
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) < 2 || text(n.Args[0]) != "msg" {
				break
			}
			level := name(n.Fun) // warn, or Log of a logger with a level
			if log, ok := n.Fun.(*ast.SelectorExpr); ok {
				if with, ok := log.X.(*ast.CallExpr); ok {
					level = name(with.Fun)
				}
			}
			level = strings.Replace(strings.ToLower(level), "debug", "info", 1)
			messages = append(messages, level+" "+text(n.Args[1]))
		case *ast.CompositeLit:
			for i, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					e = kv.Value
				}
				if message := text(e); message != "" && (name(n.Type) == "eventKind" || name(n.Type) == "Event" && i == 0) {
					messages = append(messages, "info "+message)
				}
			}
		}
		return true
	})
	return messages
}

// TestLogMessages checks that the tables of operations.md have each message that the program
// logs, those of events included, and no other, and the levels of warnings and errors.
func TestLogMessages(t *testing.T) {
	have, explained := map[string]bool{}, map[string]bool{}
	for path, source := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/") || strings.HasPrefix(path, "internal/simulator/") {
			continue
		}
		for _, message := range logged(t, path, source) {
			have[message] = true
		}
	}
	_, document, _ := strings.Cut(repo.Read(t, "docs/operations.md"), "## Log messages\n")
	messages, document, _ := strings.Cut(document, "\n### Reasons of failures\n")
	_, document, _ = strings.Cut(document, "\n### Events\n")
	events, _, _ := strings.Cut(document, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (?:(info|info, debug|warn|error) \\| )?(`[^|]+`) \\|").FindAllStringSubmatch(messages+events, -1) {
		for _, message := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			level := row[1]
			if level != "warn" && level != "error" {
				level = "info"
			}
			explained[level+" "+message[1]] = true
		}
	}
	simtest.AssertEqual(t, "messages that docs/operations.md explains", slices.Sorted(maps.Keys(explained)), slices.Sorted(maps.Keys(have)))
}
