package units

import (
	"math"
	"strconv"
	"strings"
)

// Term is one size of a sum.
type Term struct {
	Bytes uint64
	Minus bool
	What  string // what it is the size of
}

// Sum writes a sum that a reader can check by hand: "7.11 GiB allocated +
// 0.32 GiB (327.68 MiB) cached = 7.43 GiB reserved". All sizes are in the unit
// of the largest; a size that [Size] writes in another unit has that behind it;
// and the result is that of the numbers as they are written.
func Sum(terms []Term, what string) string {
	var largest uint64
	for _, t := range terms {
		largest = max(largest, t.Bytes)
	}
	unit, name := unitOf(largest)
	var b strings.Builder
	var result int64 // in hundredths
	for i, t := range terms {
		n := int64(math.Round(100 * float64(t.Bytes) / float64(unit)))
		switch {
		case t.Minus:
			b.WriteString(" - ")
			result -= n
		default:
			if i > 0 {
				b.WriteString(" + ")
			}
			result += n
		}
		b.WriteString(written(n, unit, name))
		if own, _ := unitOf(t.Bytes); own != unit && t.Bytes > 0 {
			b.WriteString(" (" + Size(t.Bytes) + ")")
		}
		b.WriteString(" " + t.What)
	}
	return b.String() + " = " + written(result, unit, name) + " " + what
}

// written is a number of hundredths with its unit.
func written(n int64, unit uint64, name string) string {
	places := 2
	if unit == 1 {
		places = 0
	}
	return strconv.FormatFloat(float64(n)/100, 'f', places, 64) + " " + name
}
