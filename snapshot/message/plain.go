package message

import (
	"bytes"
	"strings"
)

// Plain returns text with all that terminals, loggers and quoting added to it
// replaced by blanks: colours, escapes of JSON strings, prefixes of lines. It
// has the length of text and every byte kept stands where it stood. An escaped
// line end becomes a real one.
func Plain(text string) string {
	b := unescape(text)
	for start := 0; start < len(b); {
		end := lineEnd(b, start)
		blankPrefix(b[start:end])
		start = end + 1
	}
	return string(b)
}

func lineEnd(b []byte, start int) int {
	for i := start; i < len(b); i++ {
		if b[i] == '\n' {
			return i
		}
	}
	return len(b)
}

// hidden are multi-byte characters that print as nothing or as a blank.
var hidden = []string{"\u00a0", "\u200b", "\u2028", "\ufeff"}

// unescape blanks terminal sequences, control characters and backslashes.
func unescape(text string) []byte {
	b := []byte(text)
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\n' || c == '\t':
		case c == escape:
			i = blank(b, i, sequenceEnd(b, i+1)) - 1
		case c == '\r':
			if b[i] = ' '; i+1 < len(b) && b[i+1] != '\n' {
				b[i] = '\n'
			}
		case c < ' ' || c == 0x7f:
			b[i] = ' '
		case c == '\\':
			i = unescapeOne(b, i) - 1
		case c == 0xc2 || c == 0xe2 || c == 0xef:
			for _, h := range hidden {
				if strings.HasPrefix(text[i:], h) {
					i = blank(b, i, i+len(h)) - 1
					break
				}
			}
		}
	}
	return b
}

// escaped maps what follows the backslashes to what it stands for.
var escaped = []struct {
	name string
	is   byte
}{
	{"u003e", '>'}, {"u003c", '<'}, {"u0026", '&'}, {"u0027", '\''}, {"u0022", '"'}, {"n", '\n'}, {"r", ' '}, {"t", ' '},
}

// unescapeOne handles the run of backslashes at i and returns where to go on.
func unescapeOne(b []byte, i int) int {
	j := i
	for j < len(b) && b[j] == '\\' {
		j++
	}
	rest := b[j:min(len(b), j+6)]
	for _, name := range []string{"u001b[", "x1b[", "033[", "e["} {
		if strings.HasPrefix(string(rest), name) {
			return blank(b, i, sequenceEnd(b, j+len(name)-1))
		}
	}
	for _, e := range escaped {
		if strings.HasPrefix(string(rest), e.name) {
			blank(b, i, j+len(e.name))
			b[j] = e.is
			return j + len(e.name)
		}
	}
	return blank(b, i, j+control(rest))
}

// control returns the length of the escape of a control character after its
// backslashes, x01 or u0001, 0 if there is none.
func control(rest []byte) int {
	for _, name := range []string{"x", "u00"} {
		if n := len(name); len(rest) >= n+2 && string(rest[:n]) == name && (rest[n] == '0' || rest[n] == '1') && bytes.IndexByte([]byte("0123456789abcdef"), rest[n+1]) >= 0 {
			return n + 2
		}
	}
	return 0
}

// escape begins a terminal sequence.
const escape = 0x1b

// colourless returns text without terminal sequences.
func colourless(text string) string {
	if strings.IndexByte(text, escape) < 0 {
		return text
	}
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] == escape {
			i = min(len(text), sequenceEnd([]byte(text[:min(len(text), i+longestSequence)]), i+1))
			continue
		}
		kept = append(kept, text[i])
		i++
	}
	return string(kept)
}

const longestSequence = 64

// sequenceEnd returns the end of a terminal sequence whose escape character
// ends at i.
func sequenceEnd(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	if b[i] != '[' && b[i] != ']' {
		return i + 1
	}
	for j := i + 1; j < min(len(b), i+longestSequence); j++ {
		if b[i] == '[' && b[j] >= '@' && b[j] <= '~' || b[i] == ']' && b[j] == 7 {
			return j + 1
		}
	}
	return i + 1
}

func blank(b []byte, from, to int) int {
	to = min(to, len(b))
	for i := from; i < to; i++ {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
	return to
}
