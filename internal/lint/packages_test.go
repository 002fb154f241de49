package lint

import (
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDoc looks for the comment of every package in doc.go, and nowhere else.
func TestDoc(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range sources(t) {
		if f.isTest() {
			continue
		}
		if filepath.Base(f.path) == "doc.go" && f.ast.Doc != nil {
			documented[f.folder()] = true
			if name := f.ast.Name.Name; name != "main" && !strings.HasPrefix(f.ast.Doc.Text(), "Package "+name+" ") {
				t.Errorf("%s: the comment does not begin with %q", f.path, "Package "+name)
			}
		} else if f.ast.Doc != nil {
			t.Errorf("%s:%d: a package comment that is not in doc.go", f.path, f.line(f.ast.Doc.Pos()))
		}
	}
	for _, f := range sources(t) {
		if !documented[f.folder()] {
			documented[f.folder()] = true
			t.Errorf("%s has no doc.go with a package comment", f.folder())
		}
	}
}

// examples returns the programs in examples, tests aside, by folder.
func examples(t *testing.T) map[string][]*source {
	all := map[string][]*source{}
	for _, f := range sources(t) {
		if strings.HasPrefix(f.path, "examples/") && !f.isTest() && !strings.Contains(f.path, "/internal/") {
			all[f.folder()] = append(all[f.folder()], f)
		}
	}
	if len(all) < 7 {
		t.Fatalf("only %d examples were found", len(all))
	}
	return all
}

func TestExamplesImport(t *testing.T) {
	for _, files := range examples(t) {
		for _, f := range files {
			for _, i := range f.ast.Imports {
				if to := ours(i); to != "" && !public(to) {
					t.Errorf("%s:%d: imports %s, which other modules cannot", f.path, f.line(i.Pos()), to)
				}
			}
		}
	}
}

// ours returns the folder of an imported package of this module.
func ours(i *ast.ImportSpec) string {
	to, err := strconv.Unquote(i.Path.Value)
	if folder, found := strings.CutPrefix(to, module+"/"); err == nil && found {
		return folder
	}
	return ""
}

// TestExamplesOutside compiles copies of the examples in a module of its own.
func TestExamplesOutside(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, needs, _ := strings.Cut(string(goMod), "\n") // all but the line with the module's name
	files := map[string]string{
		"go.mod": "module example.com/outside\n" + needs + "\nrequire " + module + " v0.0.0\nreplace " + module + " => " + strconv.Quote(here) + "\n",
	}
	sums, err := os.ReadFile(root + "/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	files["go.sum"] = string(sums)
	for _, example := range examples(t) {
		for _, f := range example {
			files[f.path] = f.text
		}
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	vet := exec.Command("go", "vet", "-mod=mod", "./...") // compiles and does not link
	vet.Dir = dir
	vet.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off")
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
