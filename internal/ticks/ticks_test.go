package ticks

import (
	"testing"
	"time"
)

// TestReading checks that ticks land on the wall clock, at both ends and in
// the middle.
func TestReading(t *testing.T) {
	c := NewClock()
	type point struct {
		before time.Time
		tick   int64
		after  time.Time
	}
	var points []point
	for range 5 {
		points = append(points, point{time.Now(), Now(), time.Now()})
		time.Sleep(5 * time.Millisecond)
	}
	r := c.Reading()
	for i, p := range points {
		const slack = 2 * time.Millisecond
		if at := time.Unix(0, r.UnixNano(p.tick)); at.Before(p.before.Add(-slack)) || at.After(p.after.Add(slack)) {
			t.Errorf("point %d, between %v and %v, is read as %v", i, p.before, p.after, at)
		}
		if i > 0 && p.tick <= points[i-1].tick {
			t.Errorf("tick %d does not grow: %d after %d", i, p.tick, points[i-1].tick)
		}
	}
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
