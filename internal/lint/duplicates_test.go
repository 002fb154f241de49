package lint

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// runLength is the number of lines from which on a repetition counts.
const runLength = 10

// line is a line of code without comments.
type line struct {
	number   int
	function string // that it is in
	exact    string // its tokens
	shape    string // the same with names and literals replaced
}

// linesOf returns the lines of a file that hold code, imports aside.
//
// Only what functions do has a shape: all lines of a struct, a table or a
// literal look alike.
func linesOf(f *source) (lines []line) {
	functions, imports := partsOf(f)
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(f.path, -1, len(f.text))
	s.Init(file, []byte(f.text), nil, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return lines
		}
		number := file.Line(pos)
		if tok == token.SEMICOLON && text == "\n" || imports[number] {
			continue
		}
		if len(lines) == 0 || lines[len(lines)-1].number != number {
			lines = append(lines, line{number: number, function: functions[number]})
		}
		l := &lines[len(lines)-1]
		shape := tok.String()
		if tok == token.IDENT || tok.IsLiteral() {
			shape = "x"
		} else {
			text = shape
		}
		l.exact += text + " "
		if l.function != "" {
			l.shape += shape + " "
		}
	}
}

// partsOf returns the name of each line's function, nothing for lines of
// literals and declarations, and the lines of imports.
func partsOf(f *source) (functions map[int]string, imports map[int]bool) {
	functions, imports = map[int]string{}, map[int]bool{}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.GenDecl:
			for i := f.line(d.Pos()); d.Tok == token.IMPORT && i <= f.line(d.End()); i++ {
				imports[i] = true
			}
		case *ast.FuncDecl:
			set := func(from, to int, name string) {
				for i := from; i <= to; i++ {
					functions[i] = name
				}
			}
			set(f.line(d.Pos()), f.line(d.End()), nameOf(d))
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					set(f.line(n.Lbrace)+1, f.line(n.Rbrace)-1, "")
				case *ast.FuncLit:
					set(f.line(n.Body.Lbrace)+1, f.line(n.Body.Rbrace)-1, nameOf(d))
				}
				return true
			})
		}
	}
	return functions, imports
}

// nameOf returns the name of a function, with its receiver's type.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if p, ok := receiver.(*ast.StarExpr); ok {
		receiver = p.X
	}
	if g, ok := receiver.(*ast.IndexExpr); ok {
		receiver = g.X
	}
	return fmt.Sprint(receiver, ".", d.Name.Name)
}

// place is a line of a file, both as indices.
type place struct{ file, line int }

// run is a run of lines and its repetition.
type run struct {
	a, b   place
	length int
	exact  bool
}

// duplicates lists the longest runs that occur twice: equal ones, then those of
// equal shape. A run does not overlap with its repetition. Of a run that occurs
// more often, each occurrence is listed with the one before it.
func duplicates(files [][]line) (runs []run) {
	for _, exact := range []bool{true, false} {
		latest := map[string]place{}
		within := map[[2]place]int{} // the run in which two windows are alike
		for f, lines := range files {
			for i := range lines {
				w := window(lines[i:], exact)
				a, found := latest[w]
				b := place{f, i}
				if w == "" || found && a.file == f && i-a.line < runLength {
					continue
				}
				latest[w] = b
				if !found || !exact && slices.ContainsFunc(runs, func(r run) bool { return r.covers(a, b) }) {
					continue
				}
				r, goesOn := within[[2]place{{a.file, a.line - 1}, {f, i - 1}}]
				if !goesOn {
					r = len(runs)
					runs = append(runs, run{a, b, runLength - 1, exact})
				}
				runs[r].length++
				within[[2]place{a, b}] = r
			}
		}
	}
	return runs
}

// covers reports whether two windows are lines of an equal run, or overlap with
// it.
func (r run) covers(a, b place) bool {
	n := a.line - r.a.line
	return r.exact && a.file == r.a.file && b.file == r.b.file && n == b.line-r.b.line && -runLength < n && n < r.length
}

// window returns the text of the first lines, or nothing if they are no run.
func window(lines []line, exact bool) string {
	if len(lines) < runLength {
		return ""
	}
	var w strings.Builder
	for _, l := range lines[:runLength] {
		if exact {
			w.WriteString(l.exact)
		} else if l.shape == "" || l.function != lines[0].function {
			return ""
		} else {
			w.WriteString(l.shape)
		}
		w.WriteByte('\n')
	}
	return w.String()
}

// alike are repetitions that stay, by the functions' files and names.
var alike = []struct{ a, b, reason string }{
	{"internal/replay/oracle/decode_segment.go puller.segment", "internal/replay/oracle/decode_segment.go puller.block", "a case for each key"},
	{"internal/view/runs.go Server.serveRuns", "internal/view/work.go Server.stopWork", "two requests that name a number"},
	{"snapshot/recorder/read.go reader.read", "snapshot/recorder/read.go reader.read", "a case for each key"},
	{"snapshot/segments.go builder.segment", "snapshot/segments.go builder.block", "the loop over a dictionary's keys, unrolled where files have millions"},
	{"snapshot/segments.go builder.block", "snapshot/segments.go builder.use", "the same"},
	{"snapshot/events.go builder.event", "snapshot/segments.go builder.use", "the same"},
	{"snapshot/stats/literal.go literals.list", "snapshot/stats/literal.go literals.dict", "lists and dicts both have items"},
}

func TestDuplicates(t *testing.T) {
	if len(alike) > 15 {
		t.Errorf("%d repetitions are excused, and 15 may be", len(alike))
	}
	files := slices.DeleteFunc(slices.Clone(sources(t)), func(f *source) bool {
		return f.isTest() || strings.HasPrefix(f.path, "examples/")
	})
	lines := make([][]line, len(files))
	for i, f := range files {
		lines[i] = linesOf(f)
	}
	used := make([]bool, len(alike))
	for _, r := range duplicates(lines) {
		x, y := lines[r.a.file][r.a.line:], lines[r.b.file][r.b.line:]
		a := files[r.a.file].path + " " + x[0].function
		b := files[r.b.file].path + " " + y[0].function
		excused := false
		for i, e := range alike {
			if e.a == a && e.b == b {
				used[i], excused = true, true
			}
		}
		if excused {
			continue
		}
		what := "of one shape"
		if r.exact {
			what = "equal"
		}
		t.Errorf("%d lines %s: %q, lines %d to %d, and %q, lines %d to %d", r.length, what,
			a, x[0].number, x[r.length-1].number, b, y[0].number, y[r.length-1].number)
	}
	for i, e := range alike {
		if !used[i] {
			t.Errorf("%q and %q are not alike: take them out of the table", e.a, e.b)
		}
	}
}

func TestFindDuplicates(t *testing.T) {
	const body = `() int {
	a := 1 // one
	b := 2

	c := f(a)
	d := f(b)
	for c > d {
		c--
		a += b
	}
	return d
}
`
	rename := strings.NewReplacer("a", "x", "1", `"text"`, "// one", "/* two */ ")
	longer := strings.Replace(body, "c--\n", "c--\n\t\tc--\n", 1)
	cases := strings.Repeat("\tcase 1:\n\t\treturn\n", 12)
	for _, tt := range []struct{ name, text, want string }{
		{"equal", "func f" + body + "func g" + body, "10 lines, equal: f g"},
		{"one shape", "func f" + body + "func (s *t[x]) g" + rename.Replace(body), "10 lines: f t.g"},
		{"three", "func f" + body + "var v int\nfunc g" + rename.Replace(body) + "func h" + body, "10 lines, equal: f h; 11 lines: f g; 11 lines: g h"},
		{"a line between", "func f" + body + "func g" + longer, ""},
		{"a table", "var v = []int{" + strings.Repeat("\n\t1,\n\t2,\n\t3,", 8) + "\n}\n", "12 lines, equal:  "},
		{"structs", "type a struct {" + strings.Repeat("\n\tf int", 12) + "\n}\ntype b struct {" + strings.Repeat("\n\tg uint", 12) + "\n}\n", ""},
		{"literals", "func f() T {\n\treturn T{" + strings.Repeat("\n\t\tf: 1,", 12) + "\n\t}\n}\nfunc g() T {\n\treturn T{" + strings.Repeat("\n\t\tg: 2,", 12) + "\n\t}\n}\n", ""},
		{"over two functions", "func f() {\n\ta := 1\n}\nfunc g() {\n\tb := 2\n}\nfunc h() {\n\tc := 3\n}\n" + "func i() {\n\td := 1\n}\nfunc j() {\n\te := 2\n}\nfunc k() {\n\tl := 3\n}\n", ""},
		{"within itself", "func f() {\n\tswitch x {\n" + cases + "\t}\n}\n", "11 lines, equal: f f"},
	} {
		lines := linesOf(read(t, "a.go", "package p\n\nimport (\n\t\"fmt\"\n)\n\n"+tt.text))
		var got []string
		for _, r := range duplicates([][]line{lines}) {
			exact := ""
			if r.exact {
				exact = ", equal"
			}
			got = append(got, fmt.Sprintf("%d lines%s: %s %s", r.length, exact, lines[r.a.line].function, lines[r.b.line].function))
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
