package bisect

import (
	"errors"
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// Range is where a border is looked for: from Low to High, which suffices. High
// is 0 while nothing is known that does. Both are multiples of Step.
type Range struct{ Low, High, Step uint64 }

// New returns a range of whole steps. low is a bound from below; high suffices,
// or is 0.
func New(low, high, step uint64) *Range {
	r := &Range{Step: step}
	r.Low, r.High = r.Up(low), r.Up(high)
	return r
}

// Up rounds up to a whole step.
func (r *Range) Up(n uint64) uint64 { return (n + r.Step - 1) / r.Step * r.Step }

// ErrNone says that nothing suffices.
var ErrNone = errors.New("no size is enough")

// Test reports whether n bytes suffice. One that learns more than that may
// narrow the range itself.
type Test func(n uint64) (bool, error)

// Halve returns the border, found by halving the range. High must be known.
func (r *Range) Halve(test Test) (uint64, error) {
	for r.Low < r.High {
		if _, err := r.narrow((r.Low+(r.High-r.Low)/2)/r.Step*r.Step, test); err != nil {
			return 0, err
		}
	}
	return r.High, nil
}

// Climb returns the border. It looks upwards from Low first, in strides that
// double: right where the border is near Low, or where High is not known. Where
// a test narrows the range from below it goes on there, some times: what does not
// suffice is often known sooner than what does.
func (r *Range) Climb(test Test) (uint64, error) {
	n := r.Low
	hops := 0
	for stride := max(r.Up(r.Low/64), r.Step); r.High == 0 || r.Low < r.High && n < r.High; stride *= 2 {
		ok, err := r.narrow(n, test)
		if err != nil {
			return 0, err
		}
		if ok {
			break
		}
		if n > math.MaxUint64/4 {
			return 0, fmt.Errorf("%w, not even %s", ErrNone, units.Size(n))
		}
		if learned := r.Low > n+r.Step; learned && hops < maxHops {
			hops++
			n = r.Low
			continue
		}
		n = max(n+stride, r.Low)
	}
	return r.Halve(test)
}

// maxHops bounds how often Climb goes where a test says, which may be a small
// step each time.
const maxHops = 6

// narrow tests n, which lies in the range, and narrows the range by the result.
func (r *Range) narrow(n uint64, test Test) (bool, error) {
	ok, err := test(n)
	switch {
	case err != nil:
		return false, err
	case ok && (r.High == 0 || n < r.High):
		r.High = n
	case !ok:
		r.Low = max(r.Low, n+r.Step)
	}
	if r.High > 0 {
		r.Low = min(r.Low, r.High)
	}
	return ok, nil
}
