package dry

import (
	"reflect"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/documented"
)

// Every field of the JSON is documented.
func TestDocumented(t *testing.T) {
	documented.Check(t, "../../docs/json.md", reflect.TypeFor[Document](), 40, "dry", "plan")
}
