package yaml

import (
	"fmt"
	"strings"
	"testing"
)

// TestLargeFiles: work grows with the length of a text, whatever it is made of. Each of these
// takes minutes if it grows with the square.
func TestLargeFiles(t *testing.T) {
	const size = 2 << 20
	fill := func(f func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(f(i))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"keys":                  fill(func(i int) string { return fmt.Sprintf("%x: 1\n", i) }),
		"a plain text goes on":  "a: x\n" + fill(func(int) string { return " y\n" }),
		"a literal":             "a: |\n" + fill(func(int) string { return " y\n" }),
		"items":                 fill(func(int) string { return "-\n" }),
		"a bracket goes on":     "a: [1\n" + fill(func(int) string { return " ,1\n" }) + "]",
		"keys in brackets":      "a: {" + fill(func(i int) string { return fmt.Sprintf("%x: 1,\n ", i) }) + "z: 1}",
		"a bracket on one line": "a: [" + fill(func(int) string { return "1," }) + "1]",
		"quotes":                fill(func(i int) string { return fmt.Sprintf("\"%x\": 'y'\n", i) }),
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%s: %.100v", name, err)
		}
	}
	if _, err := ParseJSON([]byte("{" + fill(func(i int) string { return fmt.Sprintf("\"%x\":1,\n", i) }) + "\"z\":1}")); err != nil {
		t.Errorf("JSON: %.100v", err)
	}
}
