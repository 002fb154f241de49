package spelling

import "strings"

// DidYouMean returns a question to append to an error about a word that is none
// of the known ones: " (did you mean always?)", or nothing if none is like it.
func DidYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return " (did you mean " + near + "?)"
	}
	return ""
}

// Nearest returns the known word that a misspelt one was probably meant to be:
// the one with the fewest letters to change, of few enough to be a slip, or else
// the first that begins with it. Case, and whether parts are joined by - or _,
// do not count. It returns "" if there is none.
func Nearest(word string, known []string) string {
	word = plain(word)
	best, away := "", 1+min(2, len(word)/3)
	for _, k := range known {
		if d := Distance(word, plain(k)); d < away {
			best, away = k, d
		}
	}
	if best != "" || len(word) < 2 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(plain(k), word) {
			return k
		}
	}
	return ""
}

func plain(word string) string { return strings.ReplaceAll(strings.ToLower(word), "_", "-") }

// Distance returns the number of letters to change, insert or leave out to turn
// one word into the other.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
