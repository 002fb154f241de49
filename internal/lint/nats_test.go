package lint

import (
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
