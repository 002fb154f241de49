package fleet

import (
	"reflect"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/documented"
)

func TestDocumented(t *testing.T) {
	for _, d := range []struct {
		document reflect.Type
		fields   int
	}{
		{reflect.TypeFor[Added](), 7},
		{reflect.TypeFor[Status](), 16},
		{reflect.TypeFor[Checked](), 7},
		{reflect.TypeFor[WrittenTable](), 4},
		{reflect.TypeFor[Removed](), 1},
		{reflect.TypeFor[Requeued](), 1},
	} {
		documented.Check(t, "../../docs/json.md", d.document, d.fields, "fleet")
	}
}
