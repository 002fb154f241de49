package gpu

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every field of the JSON is documented.
func TestFieldsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	for command, tt := range map[string]struct {
		typ   reflect.Type
		least int
	}{
		"gpu":       {reflect.TypeFor[Info](), 25},
		"gpu bench": {reflect.TypeFor[Bench](), 35},
	} {
		_, section, found := strings.Cut(string(raw), "\n## ashlar "+command+"\n")
		if !found {
			t.Fatalf("docs/json.md has no section on %s", command)
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
				if !f.Anonymous {
					n++
					if name := f.Tag.Get("json"); name == "" || !strings.Contains(section, "`"+name+"`") {
						t.Errorf("%s: %s.%s (%q) is not in docs/json.md", command, typ.Name(), f.Name, name)
					}
				}
				walk(f.Type)
			}
		}
		walk(tt.typ)
		if n < tt.least {
			t.Errorf("%s: only %d fields were looked at", command, n)
		}
	}
}
