package check

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// span is a value that lies between low and high. A value that is not known at
// all lies between -Inf and +Inf.
type span struct {
	low, high float64
	why       string // it is not one number
	at        string // where it was reached, in words
}

func exactly(v float64) span { return span{low: v, high: v} }

func unknown(why string) span { return span{low: math.Inf(-1), high: math.Inf(1), why: why} }

// atLeast returns a value that may be higher.
func atLeast(v float64, why string) span { return span{low: v, high: math.Inf(1), why: why} }

// fromRange returns a value that was printed.
func fromRange(r units.Range) span {
	if r.Low == r.High {
		return exactly(float64(r.Mid))
	}
	return span{low: float64(r.Low), high: float64(r.High), why: "it is rounded in the file"}
}

func (s span) exact() bool { return s.low == s.high }

// known returns the value if it is one number.
func (s span) known() *float64 {
	if !s.exact() {
		return nil
	}
	return &s.low
}

// raise notes that the value is no lower than v, if it is not known anyway.
func (s *span) raise(v float64) {
	if !s.exact() {
		s.low = max(s.low, v)
	}
}

// count notes that something was counted n times, of which the value may have seen
// fewer.
func (s *span) count(n int64) {
	if v := float64(n); math.IsInf(s.low, -1) || v > s.low {
		*s = exactly(v)
	}
}

// atMost holds the value against an upper bound; nil if nobody can tell.
func (s span) atMost(bound float64) *bool {
	switch {
	case s.high <= bound:
		return verdict(true)
	case s.low > bound:
		return verdict(false)
	}
	return nil
}

// atLeast holds the value against a lower bound.
func (s span) atLeast(bound float64) *bool {
	switch {
	case s.low >= bound:
		return verdict(true)
	case s.high < bound:
		return verdict(false)
	}
	return nil
}

func verdict(b bool) *bool { return &b }

// text writes the value in a unit.
func (s span) text(unit string) string {
	switch {
	case s.exact():
		return amount(s.low, unit)
	case math.IsInf(s.low, -1) && math.IsInf(s.high, 1):
		return "unknown"
	case math.IsInf(s.high, 1):
		return "at least " + amount(s.low, unit)
	case math.IsInf(s.low, -1):
		return "at most " + amount(s.high, unit)
	}
	return amount(s.low, unit) + " to " + amount(s.high, unit)
}

// amount writes a number in its unit.
func amount(v float64, unit string) string {
	switch {
	case unit == Percent:
		return fmt.Sprintf("%.2f %%", v)
	case unit == Count:
		return units.Count(int64(v))
	case unit == BytesPerStep:
		return amount(v, Bytes) + " a step"
	case v < 0:
		return units.Delta(int64(v))
	}
	return units.Size(uint64(v))
}
