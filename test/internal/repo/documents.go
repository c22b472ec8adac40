package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Document is one Markdown file.
type Document struct {
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

// Walk calls visit with each file of the repository whose name has a suffix, and its path in the
// repository. It skips dist and .git.
func Walk(t testing.TB, suffix string, visit func(path, content string)) {
	t.Helper()
	if err := fs.WalkDir(os.DirFS(Path(t, ".")), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == "dist"):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix):
			visit(filepath.ToSlash(path), Read(t, path))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Documents returns all documents by path.
func Documents(t testing.TB) map[string]Document {
	t.Helper()
	all := map[string]Document{}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	Walk(t, ".md", func(path, content string) {
		source := []byte(content)
		doc := Document{Anchor: map[string]bool{}}
		_ = ast.Walk(md.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering {
				doc.add(n, source)
			}
			return ast.WalkContinue, nil
		})
		all[path] = doc
	})
	return all
}

func (d *Document) add(n ast.Node, source []byte) {
	switch n := n.(type) {
	case *ast.Heading:
		id, _ := n.AttributeString("id")
		d.Anchor[string(id.([]byte))] = true
	case *ast.Link:
		d.Links = append(d.Links, string(n.Destination))
	case *ast.Image:
		d.Links = append(d.Links, string(n.Destination))
	case *ast.FencedCodeBlock:
		d.Blocks = append(d.Blocks, Block{string(n.Language(source)), string(n.Lines().Value(source)), comment(n.PreviousSibling(), source)})
	}
}

// comment returns the text of an HTML comment, in one line; empty for anything else.
func comment(n ast.Node, source []byte) string {
	if n == nil || n.Kind() != ast.KindHTMLBlock {
		return ""
	}
	text, isComment := strings.CutPrefix(strings.Join(strings.Fields(string(n.Lines().Value(source))), " "), "<!-- ")
	if !isComment {
		return ""
	}
	return strings.TrimSuffix(text, " -->")
}
