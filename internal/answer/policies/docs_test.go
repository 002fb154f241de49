package policies

import (
	"reflect"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/documented"
)

// Every field of the JSON is documented.
func TestFieldsAreDocumented(t *testing.T) {
	documented.Check(t, "../../../docs/json.md", reflect.TypeFor[Document](), 40, "policies")
}
