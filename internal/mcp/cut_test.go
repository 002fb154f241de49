package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShorten(t *testing.T) {
	const document = `{"schema": 1, "z": [1, 2, 3, 4, 5, 6], "a": {"rows": [{"x": [[1], 1, 1, 1, 1, 1, 18446744073709551615]}, {"x": []}]}, "text": "<é>", "none": null}`
	l := limits{items: 5, document: 1 << 10}
	got, cuts, err := l.shorten([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":1,"z":[1,2,3,4,5],"a":{"rows":[{"x":[[1],1,1,1,1]},{"x":[]}]},"text":"\u003cé\u003e","none":null,` +
		`"cut":[{"list":"a.rows[].x","shown":5,"of":7},{"list":"z","shown":5,"of":6}]}`
	if string(got) != want {
		t.Errorf("shortened to\n%s, want\n%s", got, want)
	}
	if said := cutText(cuts); !strings.Contains(said, "a.rows[].x: 5 of 7\n") {
		t.Errorf("said: %s", said)
	}
	l.items = 10
	if got, cuts, err := l.shorten([]byte(document)); err != nil || len(cuts) > 0 || !strings.Contains(string(got), "18446744073709551615") {
		t.Errorf("not shortened: %s %v %v", got, cuts, err)
	}
}

// A document that is too long has fewer entries than asked for.
func TestShortenFurther(t *testing.T) {
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf("row %d", i))
	}
	document, err := json.Marshal(map[string]any{"rows": rows})
	if err != nil {
		t.Fatal(err)
	}
	_, cuts, err := limits{items: 1000, document: 2 << 10}.shorten(document)
	if want := []Cut{{"rows", 125, 1000}}; err != nil || !cmp.Equal(cuts, want) {
		t.Errorf("cut %v, %v, want %v", cuts, err, want)
	}
	_, cuts, err = limits{items: 1000, document: 10}.shorten(document)
	if want := []Cut{{"rows", leastItems, 1000}}; err != nil || !cmp.Equal(cuts, want) {
		t.Errorf("cut %v, %v, want %v", cuts, err, want)
	}
	long, err := json.Marshal(map[string]any{"text": strings.Repeat("x", mostDocument)})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := (limits{items: 1000, document: mostDocument}).shorten(long); err == nil {
		t.Error("a document above all limits is answered")
	}
}

func TestShortenText(t *testing.T) {
	l := limits{text: 12}
	if got := l.shortenText("one\ntwo\n"); got != "one\ntwo\n" {
		t.Errorf("a short text became %q", got)
	}
	if got, want := l.shortenText("one\ntwo\nthree\nfour\nfive\n"), "one\ntwo\n\n(3 more lines: give max_items to see them)\n"; got != want {
		t.Errorf("a long text became %q, want %q", got, want)
	}
	if got := l.shortenText(strings.Repeat("é", 20)); !strings.HasPrefix(got, "éééééé\n") {
		t.Errorf("a long line became %q", got)
	}
}
