package message

import (
	"math"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// found is what a pattern matched: the sizes and the whole numbers in it, in
// order, and where it ended.
type found struct {
	sizes   []units.Range
	numbers []uint64
	// decimals are numbers without a unit, as printed.
	decimals []string
	absurd   bool // a size is one that no PyTorch prints
	end      int
}

// words begin where PyTorch no longer prints numbers: "more than 1EB".
const words = 1 << 60

// part is a piece of a pattern: words, or a place for a number.
type part struct {
	words string
	place byte // 's' a size, 'd' a whole number, 'n' one that may be missing, 'f' one with decimals, 0 words
}

// compile reads a pattern: words with %s, %d, %n and %f for numbers, and %% for
// a percent sign. Blanks are for the reader only, as the text is compared without
// any.
func compile(pattern string) []part {
	var parts []part
	pattern = strings.ReplaceAll(pattern, " ", "")
	for {
		words, rest, more := strings.Cut(pattern, "%")
		if words != "" {
			parts = append(parts, part{words: words})
		}
		if !more {
			return parts
		}
		if rest[0] == '%' {
			parts = append(parts, part{words: "%"})
		} else {
			parts = append(parts, part{place: rest[0]})
		}
		pattern = rest[1:]
	}
}

// match compares the parts with text from at on. Sizes are read last, since
// most comparisons fail on a word.
func match(parts []part, text string, at int) (found, bool) {
	var f found
	var printed [2]string
	sizes := printed[:0]
	for _, p := range parts {
		rest := text[at:]
		switch p.place {
		case 0:
			if !strings.HasPrefix(rest, p.words) {
				return f, false
			}
			at += len(p.words)
		case 's':
			s, length := size(rest)
			if length == 0 {
				return f, false
			}
			sizes = append(sizes, s)
			at += length
		case 'f':
			length := 0
			for length < len(rest) && (digit(rest[length]) || rest[length] == '.') {
				length++
			}
			if length == 0 {
				return f, false
			}
			f.decimals = append(f.decimals, rest[:length])
			at += length
		default:
			n, length := number(rest)
			if length > 0 {
				f.numbers = append(f.numbers, n)
			} else if p.place == 'd' {
				return f, false
			} else if len(rest) > 1 && rest[0] == '^' { // ^A: a control character, see rawDevice
				length = 2
			}
			at += length
		}
	}
	for _, s := range sizes {
		r, ok := rangeOf(s)
		if !ok {
			return f, false
		}
		f.absurd = f.absurd || r.Low >= words
		f.sizes = append(f.sizes, r)
	}
	f.end = at
	return f, true
}

// rangeOf returns the sizes that print as s; for one beyond 64 bits their last.
func rangeOf(s string) (units.Range, bool) {
	if r, err := units.ParseTorch(s); err == nil {
		return r, true
	}
	number, unit, _ := strings.Cut(s, " ")
	if strings.Count(number, ".") > 1 {
		return units.Range{}, false
	}
	const longest = len("18446744073709551615") // of 64 bits
	if whole, _, _ := strings.Cut(number, "."); len(whole) > longest {
		return units.Exactly(math.MaxUint64), true
	}
	if unit == "bytes" { // of the CPU's allocator
		return units.Range{}, false
	}
	const decimals = 9 // more do not change a byte
	if i := strings.IndexByte(number, '.'); i >= 0 && len(number) > i+1+decimals {
		s = number[:i+1+decimals] + " " + unit
	}
	r, err := units.ParseRounded(s)
	return r, err == nil
}

// sizeUnits are the units of sizes, as compared and as printed. Metal's
// messages and retyped ones say MB for MiB.
var sizeUnits = []struct{ text, name string }{
	{"bytes", "bytes"}, {"kib", "KiB"}, {"mib", "MiB"}, {"gib", "GiB"}, {"tib", "TiB"}, {"kb", "KB"}, {"mb", "MB"}, {"gb", "GB"}, {"tb", "TB"},
}

// size reads a size without blanks, "20.00mib". It returns the size as printed
// and the length read, 0 if there is none.
func size(text string) (string, int) {
	const longest = 64
	i := 0
	for i < min(len(text), longest) && (digit(text[i]) || text[i] == '.') {
		i++
	}
	if i == 0 || !digit(text[0]) {
		return "", 0
	}
	for _, u := range sizeUnits {
		if strings.HasPrefix(text[i:], u.text) {
			return text[:i] + " " + u.name, i + len(u.text)
		}
	}
	return "", 0
}

func number(text string) (uint64, int) {
	i := 0
	for i < len(text) && digit(text[i]) {
		i++
	}
	n, err := strconv.ParseUint(text[:i], 10, 63)
	if err != nil {
		return 0, 0
	}
	return n, i
}
