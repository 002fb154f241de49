package stats

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every field of the JSON is documented.
func TestFieldsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-":
				continue
			case name == "" && !f.Anonymous:
				t.Errorf("%s.%s has no name", path, f.Name)
			case name != "" && !strings.Contains(string(doc), "`"+name+"`") && !strings.Contains(string(doc), `"`+name+`"`):
				t.Errorf("docs/json.md does not have %s.%s", path, name)
			}
			walk(f.Type, path+"."+name)
		}
	}
	walk(reflect.TypeFor[Snapshot](), "snapshot")
	walk(reflect.TypeFor[Dump](), "memory_stats")
	walk(reflect.TypeFor[Message](), "oom_messages")
	if len(seen) < 15 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
