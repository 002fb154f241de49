package units

import "strconv"

// Duration writes a time given in nanoseconds for people, with three digits:
// "93.3 ns", "1.25 us", "184 us", "18.4 ms", "2.10 s". The unit is the largest
// in which the written number is at least 1.
func Duration(ns float64) string {
	if ns < 0 {
		return "-" + Duration(-ns)
	}
	for _, unit := range []string{"ns", "us", "ms"} {
		if ns < 999.5 {
			return digits3(ns) + " " + unit
		}
		ns /= 1000
	}
	return digits3(ns) + " s"
}

// digits3 writes a number with three digits, or all that are before the point.
func digits3(v float64) string {
	places := 2
	switch {
	case v >= 99.95:
		places = 0
	case v >= 9.995:
		places = 1
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}
