package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/view"
)

// typesDir is where the types of the documents are.
const typesDir = "web/src/types"

const modulePath = "github.com/ashlar-mem/ashlar/"

// types makes the TypeScript types of the documents that the page gets, a file
// for each Go package that has some.
func types(root string) ([]file, error) {
	g := &generator{root: root, names: map[reflect.Type]string{}, modules: map[string]*module{}}
	own := view.DocumentTypes()
	for name, t := range own {
		g.names[t] = name
	}
	for _, t := range append(slices.Collect(maps.Values(own)), documents...) {
		g.module(t).reference(t)
	}
	var files []file
	for name, m := range g.modules {
		files = append(files, file{typesDir + "/" + name + ".gen.ts", m.source()})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, errors.Join(g.wrong...)
}

type generator struct {
	root    string
	names   map[reflect.Type]string
	modules map[string]*module
	wrong   []error
}

func (g *generator) bad(format string, args ...any) {
	g.wrong = append(g.wrong, fmt.Errorf(format, args...))
}

// module is the file of one Go package.
type module struct {
	g       *generator
	path    string // of the package
	imports map[string]map[string]bool
	types   map[string]*declaration
}

type declaration struct {
	of   reflect.Type
	text string
}

func (g *generator) module(t reflect.Type) *module {
	name := path.Base(t.PkgPath())
	m := g.modules[name]
	if m == nil {
		m = &module{g: g, path: strings.TrimPrefix(t.PkgPath(), modulePath), imports: map[string]map[string]bool{}, types: map[string]*declaration{}}
		g.modules[name] = m
	}
	return m
}

// reference returns the name of a type, which is declared if it is new.
func (m *module) reference(t reflect.Type) string {
	name, known := m.g.names[t]
	if !known {
		name = t.Name()
		name = string(unicode.ToUpper(rune(name[0]))) + name[1:]
	}
	home := m.g.module(t)
	if home != m {
		from := path.Base(t.PkgPath())
		if m.imports[from] == nil {
			m.imports[from] = map[string]bool{}
		}
		m.imports[from][name] = true
	}
	d := home.types[name]
	if d == nil {
		d = &declaration{t, home.declare(name, t)}
		home.types[name] = d
	}
	if d.of != t {
		m.g.bad("%v and %v are both %s for the page: name one in view.DocumentTypes", d.of, t, name)
	}
	return name
}

func (m *module) declare(name string, t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return fmt.Sprintf("export interface %s {\n%s}\n", name, m.fields(t, "  ", "\n"))
	case reflect.String:
		return fmt.Sprintf("export type %s = %s;\n", name, m.g.union(t))
	}
	return fmt.Sprintf("export type %s = %s;\n", name, m.unnamed(t))
}

func (m *module) fields(t reflect.Type, before, after string) string {
	var b strings.Builder
	for _, f := range view.Fields(t) {
		typ, mark := f.Type, ""
		if f.Optional {
			mark = "?"
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
		}
		text := m.text(typ)
		switch name := t.String() + "." + f.Name; {
		case f.Optional:
		case present[name]:
			text = strings.TrimSuffix(text, " | null")
		case nullable[name], f.Type == reflect.TypeFor[[]timeline.Frame]():
			text += " | null"
		}
		fmt.Fprintf(&b, "%s%s%s: %s;%s", before, f.Name, mark, text, after)
	}
	return b.String()
}

// text writes a type.
func (m *module) text(t reflect.Type) string {
	t = view.Shown(t)
	if as, ok := written[t]; ok {
		t = as
	}
	if t.Name() != "" && t.PkgPath() != "" && t != reflect.TypeFor[json.RawMessage]() {
		if t.Implements(reflect.TypeFor[json.Marshaler]()) {
			m.g.bad("%v writes its own JSON: add to view.Shown what the page gets", t)
		}
		return m.reference(t)
	}
	return m.unnamed(t)
}

func (m *module) unnamed(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return "number"
	case reflect.Interface:
		return "unknown"
	case reflect.Pointer:
		return m.text(t.Elem()) + " | null"
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return "unknown"
		}
		text := m.text(t.Elem())
		if e := t.Elem(); e.Kind() == reflect.Pointer && e.Elem().Kind() == reflect.Struct {
			text = m.text(e.Elem()) // lists have no gaps
		}
		if strings.Contains(text, " ") {
			text = "(" + text + ")"
		}
		return text + "[]"
	case reflect.Array:
		return "readonly [" + strings.TrimSuffix(strings.Repeat(m.text(t.Elem())+", ", t.Len()), ", ") + "]"
	case reflect.Map:
		return "Record<string, " + m.text(t.Elem()) + ">"
	case reflect.Struct:
		return "{ " + strings.TrimSuffix(m.fields(t, "", " "), "; ") + " }"
	}
	m.g.bad("%v has no form in JSON", t)
	return "never"
}

// union lists the constants of a string type, of which reflection does not know.
func (g *generator) union(t reflect.Type) string {
	dir := filepath.Join(g.root, filepath.FromSlash(strings.TrimPrefix(t.PkgPath(), modulePath)))
	names, _ := filepath.Glob(filepath.Join(dir, "*.go")) // the pattern is right
	var words []string
	for _, name := range names {
		source, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			g.bad("%v", err)
			return "never"
		}
		ast.Inspect(source, func(n ast.Node) bool {
			if c, ok := n.(*ast.ValueSpec); ok {
				if of, ok := c.Type.(*ast.Ident); ok && of.Name == t.Name() {
					for _, v := range c.Values {
						if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
							word, _ := strconv.Unquote(lit.Value) // the parser has read it
							words = append(words, "'"+word+"'")
						}
					}
				}
			}
			return true
		})
	}
	if len(words) == 0 {
		return "string"
	}
	return strings.Join(words, " | ")
}

func (m *module) source() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "// Made by make web from the Go types of %s. Do not edit.\n\n", m.path)
	for _, from := range slices.Sorted(maps.Keys(m.imports)) {
		fmt.Fprintf(&b, "import type { %s } from './%s.gen';\n", strings.Join(slices.Sorted(maps.Keys(m.imports[from])), ", "), from)
	}
	if len(m.imports) > 0 {
		b.WriteString("\n")
	}
	for i, name := range slices.Sorted(maps.Keys(m.types)) {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(m.types[name].text)
	}
	return []byte(b.String())
}
