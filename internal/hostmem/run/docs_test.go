package run

import (
	"reflect"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/documented"
)

// Every field of the JSON is documented.
func TestFieldsAreDocumented(t *testing.T) {
	for command, tt := range map[string]struct {
		typ   reflect.Type
		least int
	}{
		"host run": {reflect.TypeFor[Comparison](), 45},
	} {
		missing, n, err := documented.Missing("../../../docs/json.md", command, tt.typ)
		if err != nil || len(missing) > 0 || n < tt.least {
			t.Errorf("%s: %d fields, not in docs/json.md: %q; %v", command, n, missing, err)
		}
	}
}
