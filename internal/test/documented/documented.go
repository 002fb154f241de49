package documented

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// Missing reads the page at path and lists the JSON fields of typ, and of what
// it holds, that neither the sections of commands nor the page's introduction
// names. It also says how many fields were looked at.
func Missing(path string, typ reflect.Type, commands ...string) (missing []string, fields int, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	page, _, _ := strings.Cut(string(raw), "\n## ")
	for _, command := range commands {
		_, section, found := strings.Cut(string(raw), "\n## ashlar "+command+"\n")
		if !found {
			return nil, 0, fmt.Errorf("%s has no section on %s", path, command)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		page += section
	}
	seen := map[reflect.Type]bool{}
	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.Anonymous && !f.IsExported() {
				continue
			}
			if !f.Anonymous {
				fields++
				if name == "" || !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, `"`+name+`"`) {
					missing = append(missing, fmt.Sprintf("%s.%s (%q)", typ.Name(), f.Name, name))
				}
			}
			walk(f.Type)
		}
	}
	walk(typ)
	return missing, fields, nil
}

// Check fails a test if docs/json.md at path lacks a field of typ, or if typ has
// fewer than least fields. They are looked for in the section of the command that
// prints typ and in those that it refers to.
func Check(t testing.TB, path string, typ reflect.Type, least int, commands ...string) {
	t.Helper()
	missing, n, err := Missing(path, typ, commands...)
	if err != nil || len(missing) > 0 || n < least {
		t.Errorf("%s: %d fields, not in %s: %q; %v", typ, n, path, missing, err)
	}
}
