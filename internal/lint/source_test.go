package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/ashlar-mem/ashlar"

// root is the repository's, seen from this package.
const root = "../.."

// source is one Go file.
type source struct {
	path string // from the root, with slashes
	text string
	fset *token.FileSet
	ast  *ast.File
}

func (s *source) folder() string { return path.Dir(s.path) }

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// public reports whether other modules may import a package.
func public(folder string) bool {
	for _, element := range strings.Split(folder, "/") {
		switch element {
		case "internal", "cmd", "examples", "tools", "browsertests", "python":
			return false
		}
	}
	return true
}

// read parses one file.
func read(t *testing.T, name, text string) *source {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return &source{name, text, fset, f}
}

// parsed holds the repository's files: all tests look at the same.
var parsed = sync.OnceValues(func() ([]*source, error) {
	var files []*source
	err := walk(func(name, text string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, &source{name, text, fset, f})
		return err
	})
	return files, err
})

// sources returns every Go file of the repository, those of the modules in
// tools and browsertests too.
func sources(t *testing.T) []*source {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 500 {
		t.Fatalf("only %d Go files were found", len(files))
	}
	return files
}

// walk visits the source files of the repository.
func walk(visit func(name, text string) error) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case "testdata", "node_modules", "bin", "tmp", ".git":
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".c", ".h", ".cpp":
		default:
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(relative), string(text))
	})
}
