package units

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Torch writes a size as PyTorch does (spec 13.2). A power of 1024 stays in the
// smaller unit: 1048576 is "1024.00 KiB".
func Torch(n uint64) string {
	switch {
	case n <= kib:
		return strconv.FormatUint(n, 10) + " bytes"
	case n <= mib:
		return decimals(n, kib) + " KiB"
	case n <= gib:
		return decimals(n, mib) + " MiB"
	default:
		return decimals(n, gib) + " GiB"
	}
}

// Size writes a size for people: "1.50 GiB", "20.00 MiB", "512 B". The unit is
// the largest in which the written number is at least 1.
func Size(n uint64) string {
	unit, name := unitOf(n)
	if unit == 1 {
		return strconv.FormatUint(n, 10) + " " + name
	}
	return decimals(n, unit) + " " + name
}

// Whole writes a size as [Size] does, without decimals where they are zero:
// "20 MiB", "512 B", "1.50 GiB".
func Whole(n uint64) string {
	unit, name := unitOf(n)
	if n%unit != 0 {
		return Size(n)
	}
	return strconv.FormatUint(n/unit, 10) + " " + name
}

// Tick writes a mark of an axis that goes up to top: in the unit of top, with as
// many digits as it needs: "0.5 GiB", "0".
func Tick(n, top uint64) string {
	if n == 0 {
		return "0"
	}
	unit, name := unitOf(top)
	return strconv.FormatFloat(float64(n)/float64(unit), 'f', -1, 64) + " " + name
}

// FromTo writes a range of sizes as [Whole] writes each: "1 to 10 MiB", or
// "512 B to 1 MiB" where the units differ.
func FromTo(low, high uint64) string {
	from, to := Whole(low), Whole(high)
	_, unit, _ := strings.Cut(to, " ")
	return strings.TrimSuffix(from, " "+unit) + " to " + to
}

// SizeUp writes a size as [Size] does but never too small, for "at least this
// much": who reads the number and gives that much has given enough.
func SizeUp(n uint64) string {
	unit, name := unitOf(n)
	if unit == 1 {
		return Size(n)
	}
	whole, hundredths := n/unit, (n%unit*100+unit-1)/unit
	if hundredths == 100 {
		whole, hundredths = whole+1, 0
	}
	if whole == kib && unit < gib {
		return SizeUp(whole * unit)
	}
	return fmt.Sprintf("%d.%02d %s", whole, hundredths, name)
}

// unitOf is the unit that [Size] writes a size in. Numbers that would round to
// 1024.00 move on to the next unit: the first is 1024 - 0.005 of the smaller one.
func unitOf(n uint64) (unit uint64, name string) {
	switch {
	case n < kib:
		return 1, "B"
	case n < mib-kib/200:
		return kib, "KiB"
	case n < gib-mib/200:
		return mib, "MiB"
	}
	return gib, "GiB"
}

// Delta writes a difference of sizes with its sign: "+1.50 GiB", "-20.00 MiB";
// none is "0 B".
func Delta(n int64) string {
	switch {
	case n > 0:
		return "+" + Size(uint64(n))
	case n < 0:
		return "-" + Size(-uint64(n))
	default:
		return Size(0)
	}
}

// Count writes a number with separators between thousands: "18,435".
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	out := make([]byte, 0, len(digits)+len(digits)/3)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return sign + string(out)
}

// Plural writes a number of things whose word takes an s: "1 buffer", "18,435 buffers".
func Plural[N int | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(int64(n)) + " " + one + "s"
}

func decimals(n, unit uint64) string {
	return fmt.Sprintf("%.2f", float64(n)/float64(unit))
}
