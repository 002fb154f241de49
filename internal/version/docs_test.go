package version

import (
	"reflect"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/documented"
)

func TestDocumented(t *testing.T) {
	documented.Check(t, "../../docs/json.md", reflect.TypeFor[Document](), 4, "version")
}
