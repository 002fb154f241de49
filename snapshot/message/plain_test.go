package message

import (
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"plain text\nof two lines\n", "plain text\nof two lines\n"},
		{"\x1b[31mred\x1b[0m \x1b]0;title\x07x", "red x"},
		{`\u001b[1mbold\x1b[0m \033[2Kx`, "bold x"},
		{`a\nb\tc\\nd\"e`, "a\nb c\nd\"e"},
		{`x \u003e\u003e y`, "x >> y"},
		{"a\u00a0b\u200bc\ufeff", "a b c"},
		{"50%\r100%\r\nend", "50%\n100% \nend"},
		{"\x00\x01bell\x07", "bell"},
		{"[rank3]: text", "text"},
		{"> > text", "text"},
		{"[default0]:[rank0]: text", "text"},
		{"worker-1  | text", "text"},
		{"12: text", "text"},
		{"2024-05-08T12:00:00.123456789Z stderr F text", "text"},
		{"2024-12-16 17:10:56,767 - root - ERROR - text", "text"},
		{"(EngineCore pid=1) ERROR 05-01 14:39:06 [core.py:1131] text", "text"},
		{"(train_fn pid=26, ip=10.0.0.7) text", "text"},
		{"E0508 12:00:00 text", "text"},
		{"E0508 12:00:00.12 77 a.cc:5] text", "text"},
		{"May  8 12:00:00 node app[42]: text", "text"},
		{`{"log":"text\n","stream":"stderr","time":"2024"}`, "text\n"},
		{"ERROR:root:text", "text"},
		{"WARNING: text", "text"},
		{"[CUDA]: out of memory", "[CUDA]: out of memory"},
		{"Error: text", "Error: text"},
		{"12 things", "12 things"},
		{"(GPU 0; x)", "(GPU 0; x)"},
	} {
		got := Plain(tt.text)
		if len(got) != len(tt.text) {
			t.Errorf("%q: %d bytes of %d", tt.text, len(got), len(tt.text))
		}
		if join(got) != join(tt.want) {
			t.Errorf("Plain(%q) = %q, want %q", tt.text, got, tt.want)
		}
		for i := range len(got) {
			if c := got[i]; c != ' ' && c != '\n' && c != tt.text[i] && strings.IndexByte("<>&'\"", c) < 0 {
				t.Errorf("%q: byte %d became %q", tt.text, i, c)
			}
		}
	}
}

// join drops what blanks cannot show.
func join(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.Join(strings.Fields(l), "")
	}
	return strings.Join(lines, "\n")
}

func TestSharedPrefix(t *testing.T) {
	for _, tt := range []struct {
		head, line   string
		wantH, wantL int
	}{
		{"job 7: ", "job 12: total", 7, 8},
		{"job 7: Error: ", "job 7: total", 7, 7},
		{"torch", "total", 0, 0},
		{"12. ", "15.90 GiB", 0, 0},
		{"5.05 GiB in use. ", "16.54 GiB is", 0, 0},
		{"", "x", 0, 0},
		{"a|b ", "a|c ", 2, 2},
	} {
		if h, l := sharedPrefix([]byte(tt.head), []byte(tt.line)); h != tt.wantH || l != tt.wantL {
			t.Errorf("%q and %q share %d, %d; want %d, %d", tt.head, tt.line, h, l, tt.wantH, tt.wantL)
		}
	}
}
