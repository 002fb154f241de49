package answer

import (
	"encoding/json"
	"testing"
	"unicode"
)

func TestJSON(t *testing.T) {
	got, err := JSON(struct {
		File string `json:"file"`
	}{"a<b.pickle"})
	if want := "{\n  \"schema\": 1,\n  \"file\": \"a<b.pickle\"\n}\n"; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := JSON(struct{}{}); err != nil || string(got) != "{\n  \"schema\": 1\n}\n" {
		t.Errorf("%s, %v", got, err)
	}
	for _, wrong := range []any{[]int{1}, 7, nil} {
		if got, err := JSON(wrong); err == nil {
			t.Errorf("%v became %s", wrong, got)
		}
	}
}

// A document does not steer the terminal it is printed on, and says the same.
func TestDocumentsAreClean(t *testing.T) {
	want := map[string]string{}
	for r := range rune(0x30000) {
		if r < 0x400 || r > 0x2000 && r < 0x2100 || r > 0xd700 {
			want[string(r)] = "a" + string(r) + "b"
		}
	}
	out, err := JSON(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range string(out) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%U is in the document", r)
		}
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for k, v := range want {
		if got[k] != v {
			t.Fatalf("%q is %q", v, got[k])
		}
	}
}
