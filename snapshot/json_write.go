package snapshot

import (
	"math"
	"strconv"
	"strings"
)

// appendFloat writes a float as Python's repr and json module do.
func appendFloat(b []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, "NaN"...)
	case math.IsInf(x, 1):
		return append(b, "Infinity"...)
	case math.IsInf(x, -1):
		return append(b, "-Infinity"...)
	}
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		format = 'e'
	}
	n := len(b)
	b = strconv.AppendFloat(b, x, format, -1, 64)
	if !strings.ContainsAny(string(b[n:]), ".e") {
		b = append(b, ".0"...)
	}
	return b
}
