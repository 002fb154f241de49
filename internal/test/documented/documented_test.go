package documented

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

type part struct {
	Told   int `json:"told"`
	Untold int `json:"untold"`
}

type base struct {
	Low int `json:"low"`
}

type whole struct {
	base
	Parts  []*part `json:"parts"`
	Naked  int
	hidden int
}

func TestMissing(t *testing.T) {
	page := filepath.Join(t.TempDir(), "json.md")
	text := "# Fields\n\n## ashlar other\n\n`untold`\n\n## ashlar this\n\n`parts`, `told`, `low`\n\n## ashlar last\n\n`untold`\n"
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	missing, fields, err := Missing(page, "this", reflect.TypeFor[whole]())
	if want := []string{`part.Untold ("untold")`, `whole.Naked ("")`}; err != nil || fields != 5 || !slices.Equal(missing, want) {
		t.Errorf("%q of %d, %v; want %q of 5", missing, fields, err, want)
	}
	if _, _, err := Missing(page, "nothing", reflect.TypeFor[whole]()); err == nil {
		t.Error("a section that is not there was found")
	}
	if _, _, err := Missing(page+"x", "this", reflect.TypeFor[whole]()); err == nil {
		t.Error("a page that is not there was read")
	}
	_ = whole{}.hidden
}
