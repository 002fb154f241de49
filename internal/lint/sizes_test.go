package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allocatorSizes are the sizes of PyTorch's rules: spec 1.1.
var allocatorSizes = map[uint64]string{
	512:      "a block's unit",
	1 << 20:  "the largest small request",
	2 << 20:  "a small segment",
	10 << 20: "the least request with a segment of its own",
	20 << 20: "a large segment",
}

// constants are those that a file's expressions may name: the package's own by
// name, those of imported packages by folder and name.
type constants map[string]constant.Value

// fold evaluates an expression of integer constants.
func (c constants) fold(f *source, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT {
			return constant.MakeFromLiteral(e.Value, e.Kind, 0)
		}
	case *ast.Ident:
		return c[f.folder()+"."+e.Name]
	case *ast.SelectorExpr:
		if p, ok := e.X.(*ast.Ident); ok {
			return c[imported(f, p.Name)+"."+e.Sel.Name]
		}
	case *ast.ParenExpr:
		return c.fold(f, e.X)
	case *ast.CallExpr: // a conversion
		if t, ok := e.Fun.(*ast.Ident); ok && len(e.Args) == 1 && strings.Contains(t.Name, "int") {
			return c.fold(f, e.Args[0])
		}
	case *ast.BinaryExpr:
		x, y := c.fold(f, e.X), c.fold(f, e.Y)
		if x == nil || y == nil {
			return nil
		}
		switch e.Op {
		case token.SHL, token.SHR:
			if n, exact := constant.Uint64Val(y); exact && n < 64 {
				return constant.Shift(x, e.Op, uint(n))
			}
		case token.QUO:
			if constant.Sign(y) != 0 {
				return constant.BinaryOp(x, token.QUO_ASSIGN, y)
			}
		case token.ADD, token.SUB, token.MUL:
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return nil
}

// imported returns the folder of the package that a file knows by a name.
func imported(f *source, name string) string {
	for _, i := range f.ast.Imports {
		to, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		if i.Name != nil && i.Name.Name == name || i.Name == nil && to[strings.LastIndexByte(to, '/')+1:] == name {
			return strings.TrimPrefix(to, module+"/")
		}
	}
	return ""
}

// collect finds the packages' integer constants. Constants of one function are
// among them: names seldom mean two things in one package.
func collect(files []*source) constants {
	c := constants{}
	for range 3 { // constants of constants
		for _, f := range files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				d, ok := n.(*ast.GenDecl)
				if !ok || d.Tok != token.CONST {
					return true
				}
				for _, s := range d.Specs {
					v := s.(*ast.ValueSpec)
					for i, name := range v.Names {
						if i < len(v.Values) {
							if x := c.fold(f, v.Values[i]); x != nil {
								c[f.folder()+"."+name.Name] = x
							}
						}
					}
				}
				return true
			})
		}
	}
	return c
}

// size is a place where one of the allocator's sizes is written.
type size struct {
	path  string
	line  int
	value uint64
	text  string
}

func (s size) String() string {
	return fmt.Sprintf("%s:%d: %s is %s", s.path, s.line, s.text, allocatorSizes[s.value])
}

// sizesIn lists the largest constant expressions of a file that have the value
// of an allocator's size. A name alone is none: its declaration is, unless it
// declares the unit mib.
func (c constants) sizesIn(f *source) (found []size) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && strings.EqualFold(v.Names[0].Name, "mib") {
			return false
		}
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		v := c.fold(f, e)
		if v == nil {
			return true
		}
		if n, exact := constant.Uint64Val(v); exact && allocatorSizes[n] != "" && !isName(e) {
			text := f.text[f.fset.Position(e.Pos()).Offset:f.fset.Position(e.End()).Offset]
			found = append(found, size{f.path, f.line(e.Pos()), n, text})
		}
		return false
	})
	return found
}

func isName(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return true
	case *ast.ParenExpr:
		return isName(e.X)
	case *ast.CallExpr:
		return isName(e.Args[0])
	}
	return false
}

// otherSizes are the places where such a number is no size of the allocator's
// rules: a file or a folder, and what the number is there.
var otherSizes = []struct{ path, reason string }{
	{"alloc", "the rules themselves"},
	{"driver/host", "the page in which a driver gives memory; a cost per MiB"},
	{"driver/sim", "the page in which a driver gives memory; the table of what its calls cost"},
	{"examples", "requests that show something"},
	{"internal/answer/policies/online.go", "how many heaps are tried"},
	{"internal/answer/tune/space.go", "values of settings that are tried, in MiB"},
	{"internal/gpu", "sizes and counts that are timed"},
	{"internal/hostmem", "limits on what is read; flags of Linux"},
	{"internal/policy", "units, pages and bins of other allocators than PyTorch's"},
	{"internal/plan/eager", "elements of kernels and workspaces of libraries"},
	{"internal/plan/hf", "the first bucket of DistributedDataParallel"},
	{"internal/plan/model", "shapes of models"},
	{"internal/plan/options.go", "the most parts and ranks that make sense"},
	{"internal/plan/ledger", "the driver's page"},
	{"internal/plan/range.go", "what other libraries may take"},
	{"internal/plan/serve/defaults.go", "tokens of a step"},
	{"internal/playground/lines.go", "the driver's page"},
	{"internal/present/export/export.go", "the least slice that is drawn"},
	{"internal/present/text/plan_svg.go", "the least step of an axis"},
	{"internal/replay/oracle", "bytes that tell a file's format"},
	{"internal/test", "requests of tests"},
	{"internal/timeline/spans.go", "lifetimes in a run of the index"},
	{"internal/units", "MiB"},
	{"internal/watch", "limits on what is read"},
	{"settings/settings.go", "defaults and bounds of settings"},
	{"snapshot", "limits on what is read"},
}

// otherSize returns the entry of the table that excuses a path, or -1.
func otherSize(path string) int {
	for i, o := range otherSizes {
		if path == o.path || strings.HasPrefix(path, o.path+"/") {
			return i
		}
	}
	return -1
}

func TestSizes(t *testing.T) {
	files := slices.DeleteFunc(inModule(sources(t)), (*source).isTest)
	c := collect(files)
	used := make([]bool, len(otherSizes))
	for _, f := range files {
		for _, s := range c.sizesIn(f) {
			if i := otherSize(f.path); i >= 0 {
				used[i] = true
			} else {
				t.Errorf("%s: ask alloc", s)
			}
		}
	}
	for i, o := range otherSizes {
		if !used[i] {
			t.Errorf("%s has no such size: take it out of the table", o.path)
		}
	}
}

func TestSizesIn(t *testing.T) {
	files := []*source{
		read(t, "low/a.go", "package low\n\nconst MiB = 1 << 20\nconst Page = 2 * MiB\n"),
		read(t, "top/a.go", `package top

import (
	"github.com/ashlar-mem/ashlar/low"
	other "github.com/ashlar-mem/ashlar/low"
)

const kib = 1024
const mib = kib * 1024

func f(x uint64) uint64 {
	const unit = 256 + 256
	if x < 10*low.MiB || x == 3*mib || x/low.MiB == 7 {
		return low.Page
	}
	return max(x*1_048_576, uint64(40*other.MiB)/2, 1<<19, 512-unit)
}
`),
	}
	c := collect(files)
	var got []string
	for _, f := range files {
		for _, s := range c.sizesIn(f) {
			got = append(got, fmt.Sprintf("%s:%d %s %d", s.path, s.line, s.text, s.value))
		}
	}
	want := []string{
		"low/a.go:4 2 * MiB 2097152",
		"top/a.go:12 256 + 256 512",
		"top/a.go:13 10*low.MiB 10485760",
		"top/a.go:16 1_048_576 1048576",
		"top/a.go:16 uint64(40*other.MiB)/2 20971520",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
