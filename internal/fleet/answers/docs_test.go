package answers_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/fleet/answers"
)

var update = flag.Bool("update", false, "write the columns into docs/fleet.md")

// docs/fleet.md lists the columns as they are.
func TestColumnsAreDocumented(t *testing.T) {
	const file, heading, tags = "../../../docs/fleet.md", "\n## Columns\n\n", "| `tag.KEY` | text | the value of a tag |\n"
	var table strings.Builder
	table.WriteString("| column | kind | |\n|---|---|---|\n")
	for _, c := range answers.Columns {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", c.Name, c.Kind, c.About)
	}
	table.WriteString(tags)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("%s has no section about the columns", file)
	}
	if _, rest, ok := strings.Cut(after, tags); ok {
		after = rest
	}
	want := before + heading + table.String() + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("the columns in docs/fleet.md are not those of the program: go test ./internal/fleet/answers -run Columns -update writes them")
	}
}
