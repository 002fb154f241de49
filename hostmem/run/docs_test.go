package run

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every field of the JSON is documented.
func TestFieldsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## ashlar host run\n")
	if !found {
		t.Fatal("docs/json.md has no section on host run")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	n := 0
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			if !f.IsExported() {
				continue
			}
			n++
			if name := f.Tag.Get("json"); name == "" || !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%s.%s (%q) is not in docs/json.md", typ.Name(), f.Name, name)
			}
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[Comparison]())
	if n < 45 {
		t.Errorf("only %d fields were looked at", n)
	}
}
