// Package markdown reads the repository's documents, so that tests can check their
// links and run their commands.
package markdown

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Document is one Markdown file.
type Document struct {
	Path   string          // from the root of the repository, with slashes
	Anchor map[string]bool // anchors of its headings, as GitHub makes them
	Links  []string        // destinations of links and images
	Blocks []Block
}

// Block is a fenced block of code.
type Block struct {
	Language string // the word after the fence
	Text     string
	Comment  string // the text of the HTML comment just before it; empty without one
}

// Read reads all documents below a directory, by path. It skips node_modules, dist and .git.
func Read(root string) (map[string]Document, error) {
	all := map[string]Document{}
	err := Walk(root, func(path string) error {
		if filepath.Ext(path) != ".md" {
			return nil
		}
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		all[path], err = parse(path, source)
		return err
	})
	return all, err
}

// Walk calls visit with the path of each file of the repository.
func Walk(root string, visit func(path string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return visit(path)
		case d.Name() == "node_modules" || d.Name() == ".git" || path == "dist":
			return fs.SkipDir
		}
		return nil
	})
}

func parse(path string, source []byte) (Document, error) {
	doc := Document{Path: path, Anchor: map[string]bool{}}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	err := ast.Walk(md.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			doc.Anchor[string(id.([]byte))] = true
		case *ast.Link:
			doc.Links = append(doc.Links, string(n.Destination))
		case *ast.Image:
			doc.Links = append(doc.Links, string(n.Destination))
		case *ast.FencedCodeBlock:
			doc.Blocks = append(doc.Blocks, Block{string(n.Language(source)), string(n.Lines().Value(source)), comment(n.PreviousSibling(), source)})
		}
		return ast.WalkContinue, nil
	})
	return doc, err
}

// comment returns the text of an HTML comment, in one line; empty for anything else.
func comment(n ast.Node, source []byte) string {
	if n == nil || n.Kind() != ast.KindHTMLBlock {
		return ""
	}
	fields := strings.Fields(string(n.Lines().Value(source)))
	if fields[0] != "<!--" {
		return ""
	}
	return strings.TrimSuffix(strings.Join(fields[1:], " "), " -->")
}
