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
// of the largest, and one that [Size] writes in another unit has that behind it.
// There are two decimals, or three if only then the rounded numbers add up; if
// they never do, the result is that of the numbers as they are written.
func Sum(terms []Term, what string) string {
	var largest uint64
	exact := 0.0
	for _, t := range terms {
		largest = max(largest, t.Bytes)
		exact += t.signed()
	}
	unit, name := unitOf(largest)
	places := 2
	text, sum := written(terms, unit, name, places)
	if sum != rounded(exact, unit, places) && unit > 1 {
		if finer, n := written(terms, unit, name, places+1); n == rounded(exact, unit, places+1) {
			places++
			text, sum = finer, n
		}
	}
	return text + " = " + decimal(sum, unit, places) + " " + name + " " + what
}

func (t Term) signed() float64 {
	if t.Minus {
		return -float64(t.Bytes)
	}
	return float64(t.Bytes)
}

// written writes the terms, and adds up what is written, in units of the last
// place.
func written(terms []Term, unit uint64, name string, places int) (string, int64) {
	var b strings.Builder
	var sum int64
	for i, t := range terms {
		switch {
		case t.Minus:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		sum += rounded(t.signed(), unit, places)
		b.WriteString(decimal(rounded(float64(t.Bytes), unit, places), unit, places) + " " + name)
		if own, _ := unitOf(t.Bytes); own != unit && t.Bytes > 0 {
			b.WriteString(" (" + Size(t.Bytes) + ")")
		}
		b.WriteString(" " + t.What)
	}
	return b.String(), sum
}

// rounded is a size in units of the last place.
func rounded(n float64, unit uint64, places int) int64 {
	return int64(math.Round(n / float64(unit) * math.Pow10(places)))
}

func decimal(n int64, unit uint64, places int) string {
	text := strconv.FormatFloat(float64(n)/math.Pow10(places), 'f', places, 64)
	if unit == 1 { // bytes have no parts
		text, _, _ = strings.Cut(text, ".")
	}
	return text
}
