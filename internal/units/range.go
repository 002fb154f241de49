package units

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"strings"
)

// Range is a size known only as it was printed: every number of bytes from Low
// to High prints to the same text. Mid is the number the text names, or the
// middle where the text names one outside the range.
type Range struct {
	Low  uint64 `json:"low"`
	Mid  uint64 `json:"mid"`
	High uint64 `json:"high"`
}

// Exactly returns the range of one number.
func Exactly(n uint64) Range { return Range{n, n, n} }

// Between returns the range from low to high with its middle.
func Between(low, high uint64) Range { return Range{low, low + (high-low)/2, high} }

// Exact reports whether the range is a single number.
func (r Range) Exact() bool { return r.Low == r.High }

// Contains reports whether n is in the range.
func (r Range) Contains(n uint64) bool { return r.Low <= n && n <= r.High }

// Add returns the range of sums. It stops at the largest number of 64 bits.
func (r Range) Add(o Range) Range {
	return Range{plus(r.Low, o.Low), plus(r.Mid, o.Mid), plus(r.High, o.High)}
}

// Sub returns the range of differences. It stops at 0.
func (r Range) Sub(o Range) Range {
	return Range{minus(r.Low, o.High), minus(r.Mid, o.Mid), minus(r.High, o.Low)}
}

func plus(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

func minus(a, b uint64) uint64 { return a - min(a, b) }

// torchUnits are the units of [Torch], each with the sizes it is used for.
var torchUnits = map[string]struct{ unit, first, last uint64 }{
	"KiB": {kib, kib + 1, mib},
	"MiB": {mib, mib + 1, gib},
	"GiB": {gib, gib + 1, math.MaxUint64},
}

// ParseTorch is the inverse of [Torch]: it reads "20.00 MiB" as all the numbers
// of bytes that PyTorch prints so (spec 13.2). A text that [Torch] never writes
// ("0.50 GiB", "20 MiB") is an error; [ParseRounded] reads those.
func ParseTorch(s string) (Range, error) {
	number, name, _ := strings.Cut(s, " ")
	if name == "bytes" {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n > kib || Torch(n) != s {
			return Range{}, notTorch(s)
		}
		return Exactly(n), nil
	}
	u, ok := torchUnits[name]
	whole, fraction, _ := strings.Cut(number, ".")
	if !ok || len(fraction) != 2 || !digits(whole) || !digits(fraction) {
		return Range{}, notTorch(s)
	}
	wanted, err := strconv.ParseUint(whole+fraction, 10, 64)
	if err != nil {
		return Range{}, notTorch(s)
	}
	mid, ok := scale(whole, fraction, u.unit)
	if !ok {
		mid = math.MaxUint64 // 17179869184.00 GiB is 2^64, one too many
	}
	// Doubles of this size are at most 2048 apart.
	slack := u.unit/100 + 4096
	low := max(u.first, minus(mid, slack))
	span := minus(min(u.last, plus(mid, slack)), low)
	at := func(limit uint64) uint64 {
		return low + uint64(sort.Search(int(span), func(i int) bool { return hundredths(low+uint64(i), u.unit) >= limit }))
	}
	r := Range{Low: at(wanted), Mid: mid, High: at(wanted + 1)}
	if hundredths(r.High, u.unit) != wanted {
		r.High--
	}
	if r.Low > r.High || Torch(r.Low) != s {
		return Range{}, notTorch(s)
	}
	if !r.Contains(r.Mid) {
		r = Between(r.Low, r.High)
	}
	return r, nil
}

// ParseRounded reads a size rounded to the decimals it is written with, in
// powers of two whatever the unit is called: "5.6 GB" is anything from 5.55 to
// 5.65 GiB. PyTorch's Metal messages and older tables write MB for MiB.
func ParseRounded(s string) (Range, error) {
	number, name, _ := strings.Cut(s, " ")
	name = strings.ToLower(strings.TrimSpace(name))
	factor, ok := factors[name[:min(1, len(name))]]
	whole, fraction, _ := strings.Cut(number, ".")
	if _, known := factors[name]; !ok || !known || name == "" || !digits(whole) || len(fraction) > 9 || (fraction != "" && !digits(fraction)) {
		return Range{}, wrong(s, "it is not a number and a unit")
	}
	mid, ok := scale(whole, fraction, factor)
	if !ok {
		return Range{}, wrong(s, "it does not fit 64 bits")
	}
	half := factor / 2
	for range fraction {
		half /= 10
	}
	return Range{Low: minus(mid, half), Mid: mid, High: plus(mid, half)}, nil
}

// hundredths is the number that [Torch] writes before the unit, without its point.
func hundredths(n, unit uint64) uint64 {
	text := decimals(n, unit)
	v, _ := strconv.ParseUint(text[:len(text)-3]+text[len(text)-2:], 10, 64)
	return v
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func notTorch(s string) error {
	return fmt.Errorf("size %q: PyTorch writes no size so; it writes for example 512 bytes, 1.50 KiB, 20.00 MiB or 139.80 GiB", s)
}
