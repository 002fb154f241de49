package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The documentation has every path of the API and every colouring.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "view.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range answers {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/view.md does not have %s", name)
		}
	}
	if all := strings.Join(colourings, `\|`); !strings.Contains(string(text), all) {
		t.Errorf("docs/view.md does not have the colourings %s", all)
	}
}
