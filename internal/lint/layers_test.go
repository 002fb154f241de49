package lint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// layers maps each path of the table in ARCHITECTURE.md to its row, counted
// from the top.
type layers map[string]int

// parseLayers reads the first fenced block after the heading "## Layers". Each
// line begins with the paths of one row, which one space separates; two spaces
// end them. driver/{sim,cuda} stands for driver/sim and driver/cuda.
func parseLayers(page string) (layers, error) {
	_, section, found := strings.Cut("\n"+page, "\n## Layers\n")
	if !found {
		return nil, fmt.Errorf(`there is no heading "## Layers"`)
	}
	section, _, _ = strings.Cut("\n"+section, "\n## ")
	_, block, opened := strings.Cut(section, "\n```")
	_, block, _ = strings.Cut(block, "\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !opened || !closed {
		return nil, fmt.Errorf(`there is no fenced block under "## Layers"`)
	}
	rows := layers{}
	for row, line := range strings.Split(block, "\n") {
		paths, _, _ := strings.Cut(line, "  ")
		for _, p := range strings.Fields(paths) {
			for _, p := range expand(p) {
				if _, twice := rows[p]; twice {
					return nil, fmt.Errorf("%s is in two rows", p)
				}
				rows[p] = row
			}
		}
	}
	return rows, nil
}

// expand lists the paths that a{b,c}d stands for.
func expand(p string) []string {
	head, rest, found := strings.Cut(p, "{")
	choices, tail, closed := strings.Cut(rest, "}")
	if !found || !closed {
		return []string{p}
	}
	var all []string
	for _, c := range strings.Split(choices, ",") {
		all = append(all, expand(head+c+tail)...)
	}
	return all
}

// entry returns the longest path of the table that a package is, or lies in.
func (l layers) entry(folder string) (string, bool) {
	for p := folder; ; {
		if _, found := l[p]; found {
			return p, true
		}
		cut := strings.LastIndexByte(p, '/')
		if cut < 0 {
			return "", false
		}
		p = p[:cut]
	}
}

// check says what is wrong with an import, or nothing. The packages of one
// entry may import each other.
func (l layers) check(from, to string) string {
	a, found := l.entry(from)
	if !found {
		return from + " is in no row"
	}
	b, found := l.entry(to)
	switch {
	case !found:
		return to + " is in no row"
	case a == b || l[b] > l[a]:
		return ""
	case l[b] == l[a]:
		return fmt.Sprintf("%s imports %s, which stands beside it (%s, %s)", from, to, a, b)
	}
	return fmt.Sprintf("%s imports %s, which stands above it (%s, %s)", from, to, a, b)
}

// checkAll lists what is wrong with the packages' imports, tests aside.
func (l layers) checkAll(files []*source) (wrong []string) {
	for _, f := range files {
		if f.isTest() {
			continue
		}
		if _, found := l.entry(f.folder()); !found {
			wrong = append(wrong, f.folder()+" is in no row")
			continue
		}
		for _, i := range f.ast.Imports {
			to := ours(i)
			if to == "" {
				continue
			}
			if w := l.check(f.folder(), to); w != "" {
				wrong = append(wrong, fmt.Sprintf("%s:%d: %s", f.path, f.line(i.Pos()), w))
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// inModule leaves out the modules in tools and browsertests, which stand above
// the whole of this one.
func inModule(files []*source) []*source {
	return slices.DeleteFunc(slices.Clone(files), func(f *source) bool {
		return strings.HasPrefix(f.path, "tools/") || strings.HasPrefix(f.path, "browsertests/")
	})
}

func TestLayers(t *testing.T) {
	page, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseLayers(string(page))
	if err != nil {
		t.Fatal("ARCHITECTURE.md: ", err)
	}
	for _, w := range rows.checkAll(inModule(sources(t))) {
		t.Error(w)
	}
	for p := range rows {
		if _, err := os.Stat(root + "/" + p); err != nil {
			t.Errorf("ARCHITECTURE.md has a row for %s: %v", p, err)
		}
	}
}

func TestParseLayers(t *testing.T) {
	const page = "# A\n\n```\nother\n```\n## Layers\n\nA package ...\n\n```text\ncmd/{a,b} view  flags in  text out\nmid             middle\n\nlow/{x,y}/z     drivers\n```\n\n```\nmore\n```\n"
	rows, err := parseLayers(page)
	if err != nil {
		t.Fatal(err)
	}
	want := layers{"cmd/a": 0, "cmd/b": 0, "view": 0, "mid": 1, "low/x/z": 3, "low/y/z": 3}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", rows, want)
	}
	for _, tt := range []struct{ page, want string }{
		{"## Layer\n", "no heading"},
		{"## Layers\n\n## Next\n```\na\n```\n", "no fenced block"},
		{"## Layers\n```\na  x\n", "no fenced block"},
		{"## Layers\n```\na  x\nb a  y\n```\n", "a is in two rows"},
	} {
		if _, err := parseLayers(tt.page); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.page, err, tt.want)
		}
	}
}

func TestCheckLayers(t *testing.T) {
	rows := layers{"cmd": 0, "view": 1, "text": 1, "replay": 2, "replay/oracle": 1, "alloc": 3}
	for _, tt := range []struct{ from, to, want string }{
		{"cmd", "alloc", ""},
		{"view", "text", "beside"},
		{"replay", "replay/oracle", "above"},
		{"replay/oracle", "replay", ""},
		{"replay/a", "replay/b", ""},
		{"replay/a", "replay", ""},
		{"alloc", "replay/b", "above"},
		{"alloc", "cmdline", "cmdline is in no row"},
		{"viewer", "alloc", "viewer is in no row"},
	} {
		got := rows.check(tt.from, tt.to)
		if tt.want == "" != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s imports %s: %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
	wrong := rows.checkAll([]*source{
		read(t, "alloc/a.go", "package alloc\n\nimport (\n\t\"fmt\"\n\t\"github.com/ashlar-mem/ashlar/view\"\n)"),
		read(t, "alloc/a_test.go", "package alloc\n\nimport \"github.com/ashlar-mem/ashlar/view\""),
		read(t, "new/a.go", "package new\n\nimport \"github.com/ashlar-mem/ashlar/view\""),
	})
	if len(wrong) != 2 || !strings.HasPrefix(wrong[0], "alloc/a.go:5: ") || wrong[1] != "new is in no row" {
		t.Errorf("%q", wrong)
	}
}
