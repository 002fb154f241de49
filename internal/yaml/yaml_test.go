package yaml

import (
	"fmt"
	"strings"
	"testing"
)

// show writes a value on one line.
func show(v Value) string {
	switch v.Kind {
	case Null:
		return "null"
	case List:
		var all []string
		for _, i := range v.Items {
			all = append(all, show(i))
		}
		return "[" + strings.Join(all, " ") + "]"
	case Map:
		var all []string
		for _, e := range v.Entries {
			all = append(all, e.Key+"="+show(e.Value))
		}
		return "{" + strings.Join(all, " ") + "}"
	}
	if v.Quoted {
		return fmt.Sprintf("%q", v.Text)
	}
	return v.Text
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "null"},
		{"# nothing\n---\n", "null"},
		{"a: 1\nb: two words # why\nc:\n", "{a=1 b=two words c=null}"},
		{"---\na: ~\nb: null\nc: 'it''s'\nd: \"x\\ty # z\"\n", `{a=null b=null c="it's" d="x\ty # z"}`},
		{"a:\n  b:\n    c: 1\n  d: 2\ne: 3", "{a={b={c=1} d=2} e=3}"},
		{"a:\n- x\n- y\nb: 1", "{a=[x y] b=1}"},
		{"a:\n  - path: p\n    type: t\n  - path: q\n", "{a=[{path=p type=t} {path=q}]}"},
		{"- - 1\n  - 2\n-\n  - 3\n", "[[1 2] [3]]"},
		{"a: [q_proj, 'v_proj', {x: 1}]\nb: {}\nc: []", `{a=[q_proj "v_proj" {x=1}] b={} c=[]}`},
		{"a: [1,\n    2, # two\n  3]\nb: 4", "{a=[1 2 3] b=4}"},
		{"a: |\n  one: x\n    # two\n\n  three\nb: >-\n  x\n  y\nc: 1", `{a="one: x\n# two\n\nthree" b="x y" c=1}`},
		{"url: http://x/y\ntime: 12:30", "{url=http://x/y time=12:30}"},
		{"\"quoted key\": 1\n'b': 2", "{quoted key=1 b=2}"},
		{"a: one\n  two\nb: 1", "{a=one two b=1}"},
		{"a: 1\r\nb: 2\r\n", "{a=1 b=2}"},
		{"a: x#y", "{a=x#y}"},
		{"{\"a\": [1, true, \"x\"], \"b\": null}", `{a=[1 true "x"] b=null}`},
		{"just a word", "just a word"},
	} {
		v, err := Parse([]byte(tt.text))
		if got := show(v); err != nil || got != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.text, got, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"a: 1\na: 2", `line 2: "a" is given twice`},
		{"a: &x 1", "line 1: \"&x 1\": anchors"},
		{"a: 1\nb: *x", "line 2: \"*x\": anchors"},
		{"<<: *x", "merge keys are not read"},
		{"a: !!int 1", "tags are not read"},
		{"a: 1\n---\nb: 2", "line 2: a second document"},
		{"a: [1, 2", "line 1: a bracket is not closed"},
		{"a: {b 1}", "followed by a colon"},
		{"a: [1] 2", "behind the closing bracket"},
		{"a: 'x", "a quote is not closed"},
		{"a: 'x' y", "stands behind a text in quotes"},
		{"a: b: c", "put it in quotes"},
		{"a:\n\tb: 1", "line 2: a tab indents it"},
		{"a:\n    b: 1\n  c: 2", "line 3: "},
		{"a: 1\nword\n", "line 2: \"word\" is no key"},
		{"a: @x", "put it in quotes"},
		{"a: 1\nb: \"\\u00\"", "line 2: \"\\u00\" is no text in quotes"},
		{"- a\n- \"\\u00\" : x\n- b", "line 2: \"\\u00\" is no text in quotes"},
		{"a:\n- [1, \"\\u00\"]", "line 2: \"\\u00\" is no text in quotes"},
		{strings.Repeat("[", 300), "nested too deep"},
		{strings.Repeat("- ", 300) + "x", "nested too deep"},
	} {
		_, err := Parse([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %q", tt.text, err, tt.want)
		}
	}
}

func TestParseJSON(t *testing.T) {
	v, err := ParseJSON([]byte("{\n \"a\": [1, true, \"x\", null],\n \"b\": {\"c\": 1e-5}\n}"))
	if got := show(v); err != nil || got != `{a=[1 true "x" null] b={c=1e-5}}` || v.Entries[1].Line != 3 {
		t.Errorf("%s, %v", got, err)
	}
	for text, want := range map[string]string{
		"{\n\"a\": 1,\n}": "line 3: not JSON", "{\"a\": 1} x": "something follows", "": "ends too early", "{\"a\": 1, \"a\": 2}": `"a" is given twice`,
		strings.Repeat("[", 300): "nested too deep",
	} {
		if _, err := ParseJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// TestEmptyItems: a dash without anything is an empty item, not a list of those below it.
func TestEmptyItems(t *testing.T) {
	v, err := Parse([]byte("a:\n-\n-\n- 1\n-\n  - 2\n"))
	if got := show(v); err != nil || got != "{a=[null null 1 [2]]}" {
		t.Errorf("%s, %v", got, err)
	}
}

// FuzzParse: no file brings the reader down.
func FuzzParse(f *testing.F) {
	f.Add("a:\n  - b: [1, {c: 'x'}]\n    d: |\n      text\n")
	f.Add("- - - x\n- \"\\u00\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Parse([]byte(text)); err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("an error without a line: %v", err)
		}
	})
}
