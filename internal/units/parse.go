package units

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// factors holds every unit in lower case. A letter alone is a power of two.
var factors = map[string]uint64{
	"": 1, "b": 1, "byte": 1, "bytes": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
}

// Parse reads a size: a number, whole or with decimals, and a unit, in either
// case and with or without blanks between. Parts of a byte are rounded.
func Parse(s string) (uint64, error) {
	text := strings.TrimSpace(s)
	if strings.HasPrefix(text, "-") {
		return 0, wrong(s, "it is negative")
	}
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(text)
	}
	number, unit := text[:end], strings.TrimSpace(text[end:])
	whole, fraction, _ := strings.Cut(number, ".")
	if whole+fraction == "" {
		return 0, wrong(s, "it does not begin with a number")
	}
	if strings.Contains(fraction, ".") {
		return 0, wrong(s, fmt.Sprintf("%q is not a number", number))
	}
	if unit == "" && fraction != "" {
		return 0, wrong(s, "it has decimals and no unit")
	}
	factor, ok := factors[strings.ToLower(unit)]
	if !ok {
		return 0, wrong(s, fmt.Sprintf("unknown unit %q", unit))
	}
	n, ok := scale(whole, fraction, factor)
	if !ok {
		return 0, wrong(s, "it does not fit 64 bits")
	}
	return n, nil
}

// bareLeast is the least number that may stand without a unit where memory is
// meant. Whoever writes 5 or 512 there means GiB or MiB: no limit, and no peak
// of a run on a GPU, is below a MiB.
const bareLeast = mib

// ParseMemory is [Parse] for an amount of memory that somebody types. A small
// number without a unit is refused, because it is hardly bytes; 0 is not.
func ParseMemory(s string) (uint64, error) {
	n, err := Parse(s)
	text := strings.TrimSpace(s)
	if err != nil || n == 0 || n >= bareLeast || strings.Trim(text, "0123456789") != "" {
		return n, err
	}
	unit := "GiB"
	if n >= kib {
		unit = "MiB"
	}
	return 0, fmt.Errorf("%s without a unit is %s bytes: %s%s? (%sB if you mean bytes)", text, text, text, unit, text)
}

// scale returns whole.fraction × factor, and false if it overflows. Both parts
// are digits and may be empty; factor is at most 2^40.
func scale(whole, fraction string, factor uint64) (uint64, bool) {
	var n uint64
	if whole != "" {
		v, err := strconv.ParseUint(whole, 10, 64)
		if err != nil {
			return 0, false
		}
		hi, lo := bits.Mul64(v, factor)
		if hi != 0 {
			return 0, false
		}
		n = lo
	}
	const places = 18 // more do not change the result by a byte
	if len(fraction) > places {
		fraction = fraction[:places]
	}
	var part, one uint64 = 0, 1
	for i := range len(fraction) {
		part, one = part*10+uint64(fraction[i]-'0'), one*10
	}
	hi, lo := bits.Mul64(part, factor)
	lo, carry := bits.Add64(lo, one/2, 0) // to nearest
	quotient, _ := bits.Div64(hi+carry, lo, one)
	n, carry = bits.Add64(n, quotient, 0)
	return n, carry == 0
}

func wrong(s, why string) error {
	return fmt.Errorf("size %q: %s; write for example 80GiB, 80GB (powers of ten), 512M, 1.5GiB or a number of bytes", s, why)
}
