package settings

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// The two ways in which C++ refuses to read a number. Either function reads
// the longest number at the beginning of a token and ignores the rest.
var (
	errNoNumber = errors.New("not a number")
	errRange    = errors.New("out of range")
)

// stoull reads an unsigned decimal number. A minus sign wraps around.
func stoull(tok string) (uint64, error) {
	digits, negative := sign(tok)
	n := span(digits, isDigit)
	if n == 0 {
		return 0, errNoNumber
	}
	v, err := strconv.ParseUint(digits[:n], 10, 64)
	if err != nil {
		return 0, errRange
	}
	if negative {
		v = -v
	}
	return v, nil
}

// stod reads a decimal or hexadecimal floating point number, inf or nan.
// A result too small for full precision is out of range, as in glibc.
func stod(tok string) (float64, error) {
	text, negative := sign(tok)
	v, err := magnitude(text)
	if err == nil && negative {
		v = -v
	}
	return v, err
}

func magnitude(text string) (float64, error) {
	if hasFoldedPrefix(text, "inf") {
		return math.Inf(1), nil
	}
	if hasFoldedPrefix(text, "nan") {
		return math.NaN(), nil
	}
	prefix, digit, exponent := "", isDigit, "eE"
	if hasFoldedPrefix(text, "0x") && span(strings.TrimPrefix(text[2:], "."), isHex) > 0 {
		prefix, digit, exponent = "0x", isHex, "pP"
	}
	text = text[len(prefix):]
	n := span(text, digit)
	count := n
	if n < len(text) && text[n] == '.' {
		fraction := span(text[n+1:], digit)
		count += fraction
		n += 1 + fraction
	}
	if count == 0 {
		return 0, errNoNumber
	}
	mantissa, power := text[:n], ""
	if n < len(text) && strings.IndexByte(exponent, text[n]) >= 0 {
		digits, _ := sign(text[n+1:])
		if d := span(digits, isDigit); d > 0 {
			power = text[n : len(text)-len(digits)+d]
		}
	}
	if prefix != "" && power == "" {
		power = "p0" // Go wants an exponent here, C does not
	}
	v, err := strconv.ParseFloat(prefix+mantissa+power, 64)
	zero := strings.Trim(mantissa, "0.") == ""
	if err != nil || v < 0x1p-1022 && !zero {
		return 0, errRange
	}
	return v, nil
}

func sign(s string) (rest string, negative bool) {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		return s[1:], s[0] == '-'
	}
	return s, false
}

// span counts the leading bytes of s for which ok holds.
func span(s string, ok func(byte) bool) int {
	n := 0
	for n < len(s) && ok(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func hasFoldedPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func isPowerOf2(v uint64) bool { return v != 0 && v&(v-1) == 0 }
