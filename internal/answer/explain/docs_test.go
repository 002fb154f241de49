package explain

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every field of the JSON is documented.
func TestFieldsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(raw), "\n## ashlar explain\n")
	if !found {
		t.Fatal("docs/json.md has no section on explain")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), "/explain") {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || f.Anonymous {
				continue
			}
			if name == "" || !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%s.%s (%q) is not in docs/json.md", path, f.Name, name)
			}
			walk(f.Type, path+"."+name)
		}
	}
	walk(reflect.TypeFor[Report](), "report")
	if len(seen) < 10 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
