package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// clocks finds comparisons of times that a test took, such as
//
//	if took := time.Since(start); took > 2*time.Second
//
// which fail on a busy machine. Waiting in a loop for so long is none, nor is
// anything under synctest, whose clock is not the machine's.
func clocks(f *source) (found []string) {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		took := map[string]bool{}
		waiting := map[ast.Node]bool{}
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if isCall(n, "synctest", "Test") {
					return false
				}
			case *ast.ForStmt:
				waiting[n.Cond] = true
			case *ast.AssignStmt:
				for i, e := range n.Rhs {
					if len(n.Lhs) == len(n.Rhs) && isElapsed(e, took) {
						took[fmt.Sprint(n.Lhs[i])] = true
					}
				}
			case *ast.BinaryExpr:
				if waiting[n] {
					return false
				}
				switch n.Op {
				case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
					if isElapsed(n.X, took) || isElapsed(n.Y, took) {
						found = append(found, fmt.Sprintf("%s:%d: %s compares times", f.path, f.line(n.Pos()), fn.Name.Name))
					}
				}
			}
			return true
		})
	}
	return slices.Compact(found)
}

// isElapsed reports whether an expression holds a time that passed: a call of
// time.Since or a Sub of time.Now, the time of the processor, or a variable with one.
func isElapsed(e ast.Expr, took map[string]bool) bool {
	elapsed := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			elapsed = elapsed || took[n.Name]
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			elapsed = elapsed || slices.Contains([]string{"Utime", "Stime", "UserTime", "SystemTime"}, n.Sel.Name)
		case *ast.CallExpr:
			elapsed = elapsed || isCall(n, "time", "Since")
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sub" {
				if now, ok := s.X.(*ast.CallExpr); ok {
					elapsed = elapsed || isCall(now, "time", "Now")
				}
			}
		}
		return true
	})
	return elapsed
}

func isCall(c *ast.CallExpr, pkg, name string) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name && fmt.Sprint(s.X) == pkg
}

func TestClocks(t *testing.T) {
	tests := 0
	for _, f := range sources(t) {
		if !f.isTest() {
			continue
		}
		tests++
		for _, c := range clocks(f) {
			t.Errorf("%s: count what it does instead", c)
		}
	}
	if tests < 100 {
		t.Errorf("only %d files of tests", tests)
	}
}

func TestFindClocks(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{"if time.Since(x) > 2*time.Second {\n\t}", "4"},
		{"if took := time.Since(x); took.Seconds() >= 2 {\n\t}", "4"},
		{"took := time.Now().Sub(x) / 2\n\tok := 3 != took", "5"},
		{"a, b := time.Since(x), 1\n\t_, _ = b > 2, a > 2", "5"},
		{"for time.Since(x) < time.Minute {\n\t\t_ = time.Since(x) == 0\n\t}", "5"},
		{"synctest.Test(t, func(*testing.T) { _ = time.Since(x) == 0 })", ""},
		{"cpu := after.Utime.Nano() - before.Utime.Nano()\n\t_ = cpu > 2", "5"},
		{"t.Log(time.Since(x))", ""},
		{"took := time.Since(x)\n\tt.Log(took)\n\t_ = len(x) > 2", ""},
		{"took := f(func() { _ = time.Since(x) })\n\t_ = took == 2", ""},
	} {
		f := read(t, "a_test.go", "package p\n\nfunc Test(t *testing.T) {\n\t"+tt.body+"\n}\n")
		var lines []string
		for _, c := range clocks(f) {
			lines = append(lines, strings.Split(c, ":")[1])
		}
		if got := strings.Join(lines, " "); got != tt.want {
			t.Errorf("%s\nfound in line %q, want %q", tt.body, got, tt.want)
		}
	}
}
