// Package documented holds docs/json.md to the types that are printed: a field
// that a program prints and no page explains is a fault that tests find.
package documented

import (
	"fmt"
	"os"
	"reflect"
	"strings"
)

// Missing reads the page at path and lists the JSON fields of typ, and of what
// it holds, that the section of a command does not name. It also says how many
// fields were looked at.
func Missing(path, command string, typ reflect.Type) (missing []string, fields int, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	_, section, found := strings.Cut(string(raw), "\n## ashlar "+command+"\n")
	if !found {
		return nil, 0, fmt.Errorf("%s has no section on %s", path, command)
	}
	section, _, _ = strings.Cut(section, "\n## ")
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
				if !f.IsExported() {
					continue
				}
				fields++
				if name := f.Tag.Get("json"); name == "" || !strings.Contains(section, "`"+name+"`") {
					missing = append(missing, fmt.Sprintf("%s.%s (%q)", typ.Name(), f.Name, name))
				}
			}
			walk(f.Type)
		}
	}
	walk(typ)
	return missing, fields, nil
}
