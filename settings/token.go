package settings

import "strings"

// tokenize cuts a text at , : [ and ], which are tokens themselves, and removes
// all white space (spec 11.2).
func tokenize(conf string) []string {
	var tokens []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			tokens = append(tokens, word.String())
			word.Reset()
		}
	}
	for i := 0; i < len(conf); i++ {
		switch c := conf[i]; c {
		case ',', ':', '[', ']':
			flush()
			tokens = append(tokens, string(rune(c)))
		case ' ', '\t', '\n', '\v', '\f', '\r':
		default:
			word.WriteByte(c)
		}
	}
	flush()
	return tokens
}
