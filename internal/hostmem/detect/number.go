package detect

import (
	"fmt"
	"math"
	"strings"
)

// number is what a function of the C library's strtol kind reads at the beginning
// of a text.
type number struct {
	value    uint64
	negative bool
	digits   bool   // there was a number
	overflow bool   // it was too large
	rest     string // what follows it
}

// leadingNumber reads a number. With base 0 a prefix sets the base: 0x or 0.
func leadingNumber(s string, base uint64) number {
	n := number{rest: s}
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	if s != "" && (s[0] == '-' || s[0] == '+') {
		n.negative = s[0] == '-'
		s = s[1:]
	}
	if base == 0 {
		base = 10
		switch {
		case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && digit(s[2]) < 16:
			base, s = 16, s[2:]
		case s != "" && s[0] == '0':
			base = 8
		}
	}
	for ; s != "" && digit(s[0]) < base; s = s[1:] {
		d := digit(s[0])
		n.digits = true
		if n.value > (math.MaxUint64-d)/base {
			n.overflow = true
			continue
		}
		n.value = n.value*base + d
	}
	if n.overflow {
		n.value = math.MaxUint64
	}
	if n.digits {
		n.rest = s
	}
	return n
}

func digit(c byte) uint64 {
	switch {
	case c >= '0' && c <= '9':
		return uint64(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10
	}
	return 99
}

// signed is the number with its sign, as far as that goes.
func (n number) signed() int64 {
	v := int64(min(n.value, math.MaxInt64))
	if n.negative {
		return -v
	}
	return v
}

// misread says how an allocator reads a text that is not, or not only, a number.
func misread(who, text, rest, reads string) string {
	switch {
	case text == "":
		return fmt.Sprintf("it is empty: %s reads it as %s", who, reads)
	case rest == text:
		return fmt.Sprintf("%q is no number: %s reads it as %s", text, who, reads)
	}
	return fmt.Sprintf("%q is dropped: %s reads %q as %s", rest, who, text, reads)
}
