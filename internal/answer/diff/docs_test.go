package diff

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every field of the JSON is documented in its part of docs/json.md.
func TestFieldsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(doc), "\n## ashlar diff\n")
	part, _, _ = strings.Cut(part, "\n## ")
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || typ.PkgPath() != reflect.TypeFor[Diff]().PkgPath() {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name := f.Tag.Get("json")
			if !f.IsExported() || name == "-" {
				continue
			}
			if name == "" || !strings.Contains(part, "`"+name+"`") && !strings.Contains(part, `"`+name+`"`) {
				t.Errorf("docs/json.md does not have %s.%s %q", typ.Name(), f.Name, name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Diff]())
	walk(reflect.TypeFor[Ranks]())
	if len(seen) < 12 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
