package lint

import (
	"slices"
	"strings"
	"testing"
)

// TestNATS checks that internal/hub alone knows what the store is made of.
func TestNATS(t *testing.T) {
	found := false
	for _, f := range sources(t) {
		for _, i := range f.ast.Imports {
			if !strings.Contains(i.Path.Value, "github.com/nats-io/") {
				continue
			}
			found = true
			if !strings.HasPrefix(f.path, "internal/hub/") {
				t.Errorf("%s:%d: imports %s: use internal/hub", f.path, f.line(i.Pos()), i.Path.Value)
			}
		}
	}
	if !found {
		t.Error("nothing imports NATS")
	}
}

// usersOfHub are the packages that may import internal/hub.
var usersOfHub = []string{"internal/hub", "internal/watch", "internal/fleet", "internal/view/live", "cmd/ashlar"}

// TestHub checks that no public package has a store behind it, directly or through
// others.
func TestHub(t *testing.T) {
	imports := map[string][]string{}
	for _, f := range sources(t) {
		for _, i := range f.ast.Imports {
			to := ours(i)
			if to == "" || f.isTest() {
				continue
			}
			imports[f.folder()] = append(imports[f.folder()], to)
			if to == "internal/hub" && !slices.Contains(usersOfHub, f.folder()) && !strings.HasPrefix(f.path, "tools/") {
				t.Errorf("%s:%d: imports internal/hub", f.path, f.line(i.Pos()))
			}
		}
	}
	seen := map[string]bool{}
	var reaches func(folder string) bool
	reaches = func(folder string) bool {
		if seen[folder] {
			return false // and if it did, that is said already
		}
		seen[folder] = true
		return folder == "internal/hub" || slices.ContainsFunc(imports[folder], reaches)
	}
	n := 0
	for folder := range imports {
		if public(folder) {
			n++
			if reaches(folder) {
				t.Errorf("%s has internal/hub behind it", folder)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d public packages were found", n)
	}
}
