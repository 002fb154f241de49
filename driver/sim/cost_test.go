package sim

import (
	"math"
	"testing"
	"time"
)

// TestPauses: the first call, calls one after the other, calls without a time and times
// that go back cost nothing more; longer pauses cost more, up to a bound.
func TestPauses(t *testing.T) {
	const took = 40 * time.Microsecond
	at, known := int64(1000), true
	clock := func() (int64, bool) { return at, known }
	var p pauses
	if got := p.call(nil, took); got != took {
		t.Errorf("without a clock: %v", got)
	}
	before := time.Duration(0)
	for _, tt := range []struct {
		after int64
		known bool
		more  bool // than the call before it
	}{
		{0, true, false}, {40, true, false}, {-500, true, false}, {5000, false, false}, {1 << 40, true, true}, {math.MinInt64, true, false}, {math.MaxInt64 - 1000, true, true},
	} {
		at, known = 1000+tt.after, tt.known
		if got := p.call(clock, took); (got > took) != tt.more || got > took+115*time.Microsecond {
			t.Errorf("after %d us: %v", tt.after, got)
		}
	}
	for _, us := range []int64{30, 100, 300, 1000, 3000, 10_000} {
		p = pauses{called: true, last: 0}
		at, known = us, true
		got := p.call(clock, took)
		if got <= before || got <= took {
			t.Errorf("after %d us: %v, %v before", us, got, before)
		}
		before = got
	}
	p = pauses{called: true}
	at = 1 << 40
	if got := p.call(clock, took); got != before {
		t.Errorf("after a long pause: %v, want %v", got, before)
	}
}
