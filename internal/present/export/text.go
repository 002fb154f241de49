package export

import (
	"strings"
	"unicode/utf8"
)

// clean makes a text that every reader takes: snapshots may hold bytes that are
// no UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// capped cuts a text to at most n bytes.
func capped(s string, n int) string {
	s = clean(s)
	if len(s) <= n {
		return s
	}
	const dots = "…"
	n -= len(dots)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + dots
}
