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
	Again  *whole  `json:"again,omitempty"`
	Left   int     `json:"-"`
	Naked  int
	hidden int
}

func TestMissing(t *testing.T) {
	page := filepath.Join(t.TempDir(), "json.md")
	text := "# Fields\n\n{\"again\"}\n\n## ashlar other\n\n`untold`\n\n## ashlar this\n\n`parts`, `told`, `low`\n\n## ashlar last\n\n`untold`\n"
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	missing, fields, err := Missing(page, reflect.TypeFor[whole](), "this")
	if want := []string{`part.Untold ("untold")`, `whole.Naked ("")`}; err != nil || fields != 6 || !slices.Equal(missing, want) {
		t.Errorf("%q of %d, %v; want %q of 6", missing, fields, err, want)
	}
	if missing, _, err := Missing(page, reflect.TypeFor[part](), "this", "last"); err != nil || len(missing) > 0 {
		t.Errorf("%q, %v", missing, err)
	}
	if _, _, err := Missing(page, reflect.TypeFor[whole](), "this", "nothing"); err == nil {
		t.Error("a section that is not there was found")
	}
	if _, _, err := Missing(page+"x", reflect.TypeFor[whole](), "this"); err == nil {
		t.Error("a page that is not there was read")
	}
	_ = whole{}.hidden
}
