package watch

import (
	"math"
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// unit is what the value of an expression is measured in.
type unit int

const (
	inNumbers unit = iota
	inBytes
	inMicroseconds
	inSeconds
	inShares // of two things of one kind
)

// unitOf finds the unit of an expression, and what it is counted per.
func unitOf(e expr) (u unit, per string) {
	switch e := e.(type) {
	case column:
		switch e {
		case Seq, Step, Retries, OOMs, DeviceAllocs, DeviceFrees:
			return inNumbers, ""
		case Time, StepTime:
			return inMicroseconds, ""
		}
		return inBytes, ""
	case headroom:
		return inBytes, ""
	case silent:
		return inSeconds, ""
	case *rate:
		u, _ := unitOf(e.of)
		return u, "/s"
	case *slope:
		u, _ := unitOf(e.of)
		return u, " per step"
	case *arithmetic:
		return e.unit()
	}
	return inNumbers, ""
}

func (b *arithmetic) unit() (unit, string) {
	x, perX := unitOf(b.a)
	y, perY := unitOf(b.b)
	switch {
	case b.op == '/' && x == y && perX == perY && x != inNumbers:
		return inShares, ""
	case b.op == '/' && y == inNumbers, x == y && perX == perY && b.op != '*':
		return x, perX
	case b.op == '*' && (x == inShares || y == inShares): // percent, perhaps
		return inNumbers, ""
	case b.op == '*' && x == inNumbers && perX == "":
		return y, perY
	case b.op == '*' && y == inNumbers && perY == "":
		return x, perX
	}
	return inNumbers, ""
}

// write writes a value of the rule with its unit.
func (r *Rule) write(v float64) string {
	u, per := unitOf(r.value)
	switch u {
	case inBytes:
		if math.Abs(v) < math.MaxInt64 {
			text := units.Size(uint64(math.Abs(math.Round(v))))
			if math.Round(v) < 0 {
				text = "-" + text
			}
			return text + per
		}
	case inMicroseconds:
		return units.Duration(v*1e3) + per
	case inSeconds:
		return units.Duration(v*1e9) + per
	case inShares:
		return strconv.FormatFloat(100*v, 'f', 1, 64) + " %" + per
	}
	if v == math.Trunc(v) && math.Abs(v) < maxNumber {
		return units.Count(int64(v)) + per
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + per
}
