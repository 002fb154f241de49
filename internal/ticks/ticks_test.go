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
		tick int64
		at   time.Time
	}
	var points []point
	for range 5 {
		points = append(points, point{Now(), time.Now()})
		time.Sleep(5 * time.Millisecond)
	}
	r := c.Reading()
	for i, p := range points {
		if d := time.Duration(r.UnixNano(p.tick) - p.at.UnixNano()).Abs(); d > 2*time.Millisecond {
			t.Errorf("point %d is off by %v", i, d)
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
