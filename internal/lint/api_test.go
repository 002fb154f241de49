package lint

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/printer"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write api.txt")

// TestAPI compares what public packages export with api.txt. A line that goes or
// changes breaks programs; renew the file with
//
//	go test ./internal/lint -run API -update
func TestAPI(t *testing.T) {
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", false
	var lines []string
	for _, f := range sources(t) {
		if !public(f.folder()) || f.isTest() {
			continue
		}
		matches, err := linux.MatchFile(path.Join(root, f.folder()), path.Base(f.path))
		if err != nil {
			t.Fatal(err)
		}
		if matches {
			lines = append(lines, exported(f)...)
		}
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	const name = root + "/api.txt"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the API is not that of api.txt; if it should be, run go test ./internal/lint -run API -update (-want +got):\n%s", d)
	}
}

// exported has a line for each symbol that a file exports: functions, types,
// their fields and methods, constants and variables.
func exported(f *source) (lines []string) {
	add := func(format string, args ...any) {
		lines = append(lines, f.folder()+": "+fmt.Sprintf(format, args...))
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case !d.Name.IsExported():
			case d.Recv == nil:
				add("func %s%s", d.Name, signature(f, d.Type))
			case ast.IsExported(strings.SplitN(nameOf(d), ".", 2)[0]):
				add("method (%s) %s%s", text(f, d.Recv.List[0].Type), d.Name, signature(f, d.Type))
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							add("%s %s", d.Tok, strings.TrimSpace(n.Name+" "+text(f, s.Type)))
						}
					}
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						declared(f, s, add)
					}
				}
			}
		}
	}
	return lines
}

// declared adds a type with its exported fields or methods.
func declared(f *source, s *ast.TypeSpec, add func(format string, args ...any)) {
	name := s.Name.Name
	if s.TypeParams != nil {
		name += "[" + fields(f, s.TypeParams) + "]"
	}
	var parts *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		add("type %s struct", name)
		parts = typ.Fields
	case *ast.InterfaceType:
		add("type %s interface", name)
		parts = typ.Methods
	default:
		if s.Assign != token.NoPos {
			name += " ="
		}
		add("type %s %s", name, text(f, s.Type))
		return
	}
	for _, p := range parts.List {
		if len(p.Names) == 0 {
			add("type %s, embedded %s", name, text(f, p.Type))
		}
		for _, n := range p.Names {
			if m, ok := p.Type.(*ast.FuncType); ok && n.IsExported() && isInterface(s) {
				add("type %s, method %s%s", name, n, signature(f, m))
			} else if n.IsExported() {
				add("type %s, field %s %s", name, n, text(f, p.Type))
			}
		}
	}
}

func isInterface(s *ast.TypeSpec) bool {
	_, ok := s.Type.(*ast.InterfaceType)
	return ok
}

// signature returns that of a function, without the parameters' names: callers
// do not use them.
func signature(f *source, fn *ast.FuncType) string {
	s := ""
	if fn.TypeParams != nil {
		s = "[" + fields(f, fn.TypeParams) + "]"
	}
	s += "(" + types(f, fn.Params) + ")"
	switch {
	case fn.Results == nil:
		return s
	case fn.Results.NumFields() == 1:
		return s + " " + types(f, fn.Results)
	}
	return s + " (" + types(f, fn.Results) + ")"
}

func types(f *source, list *ast.FieldList) string {
	var all []string
	for _, p := range list.List {
		for range max(1, len(p.Names)) {
			all = append(all, text(f, p.Type))
		}
	}
	return strings.Join(all, ", ")
}

func fields(f *source, list *ast.FieldList) string {
	var all []string
	for _, p := range list.List {
		for _, n := range p.Names {
			all = append(all, n.Name+" "+text(f, p.Type))
		}
	}
	return strings.Join(all, ", ")
}

// text returns an expression on one line.
func text(f *source, e ast.Expr) string {
	switch e := e.(type) {
	case nil:
		return ""
	case *ast.FuncType:
		return "func" + signature(f, e)
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, f.fset, e); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestExported(t *testing.T) {
	got := exported(read(t, "low/a.go", `package low

import "io"

const (
	A T = iota
	B
	c
)

var V, w = 1, 2

type T int
type U = map[string]T
type s struct{ F int }
type P[K comparable] struct {
	io.Reader
	F, g int
	H    func(n int) error
}
type I interface {
	io.Closer
	M(a, b int, more ...string) (x T, err error)
	m()
}

func New[K comparable](r io.Reader) *P[K] { return nil }
func (p *P[K]) Do()                       {}
func (p *P[K]) do()                       {}
func (s) Do()                             {}
`))
	want := []string{
		"const A T",
		"const B",
		"var V",
		"type T int",
		"type U = map[string]T",
		"type P[K comparable] struct",
		"type P[K comparable], embedded io.Reader",
		"type P[K comparable], field F int",
		"type P[K comparable], field H func(int) error",
		"type I interface",
		"type I, embedded io.Closer",
		"type I, method M(int, int, ...string) (T, error)",
		"func New[K comparable](io.Reader) *P[K]",
		"method (*P[K]) Do()",
	}
	for i := range want {
		want[i] = "low: " + want[i]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
