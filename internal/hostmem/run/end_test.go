package run

import (
	"strings"
	"testing"
	"time"
)

// What a command held in the end is seen before its processes go.
func TestEnd(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tt := range []struct {
		name  string
		ended time.Duration // 0: it was ended
		at    []time.Duration
		left  []int
		want  [2]int
	}{
		{"one process", 10 * s, []time.Duration{0, 5 * s, 9100 * ms, 9500 * ms, 9900 * ms}, []int{0, 0, 0, 0, 0}, [2]int{2, 5}},
		{"workers go, one after the other", 10 * s, []time.Duration{0, 5 * s, 9100 * ms, 9300 * ms, 9700 * ms, 9900 * ms}, []int{0, 0, 0, 1, 0, 6}, [2]int{2, 3}},
		{"some went long before", 10 * s, []time.Duration{0, 1 * s, 2 * s, 9900 * ms}, []int{0, 3, 0, 0}, [2]int{3, 4}},
		{"one is cleaned up after by another", 10 * s, []time.Duration{0, 8900 * ms, 9500 * ms, 9600 * ms}, []int{0, 0, 1, 0}, [2]int{1, 2}},
		{"the end is ten seconds at most", 1000 * s, []time.Duration{0, 980 * s, 989 * s, 999 * s}, []int{0, 0, 1, 0}, [2]int{3, 4}},
		{"no sample in its end", 10 * s, []time.Duration{0, 5 * s}, []int{0, 0}, [2]int{1, 2}},
		{"it was ended", 0, []time.Duration{0, 5 * s, 9900 * ms}, []int{0, 0, 1}, [2]int{2, 3}},
		{"nothing but its start", ms, []time.Duration{0}, []int{0}, [2]int{0, 1}},
		{"it went at once", 3 * ms, []time.Duration{0, 2900 * time.Microsecond}, []int{0, 1}, [2]int{0, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Run{Ended: tt.ended}
			if tt.ended > 0 {
				r.Exit = &Exit{}
			}
			for i, at := range tt.at {
				r.Points = append(r.Points, Point{At: at, Left: tt.left[i], RSSBytes: uint64(100 + i), PSSBytes: uint64(50 + i)})
			}
			from, to := tt.want[0], tt.want[1]
			if got := r.lastPoints(); len(got) != to-from || got[0] != r.Points[from] {
				t.Errorf("%+v", got)
			}
			if final := uint64(100 + (from+to-1)/2); r.final() != final || r.detailed().PSSBytes != uint64(50+to-1) || r.unseen() != (from == 0) {
				t.Errorf("final %d, PSS %d, unseen %v", r.final(), r.detailed().PSSBytes, r.unseen())
			}
		})
	}
}

// A shell that outlives its only large process by a moment is not what the
// command held in the end.
func TestFinalOfTree(t *testing.T) {
	t.Parallel()
	script := "(x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 2; :); sleep 0.05"
	c := mustCompare(t, Spec{Command: shell(script), Interval: 10 * time.Millisecond}, plain(t), 1)
	r := c.Results[0]
	if r.Error != nil || *r.Final != FinalAtExit || *r.FinalRSS < 20e6 {
		t.Errorf("%d of %d at its peak, %v", *r.FinalRSS, *r.PeakRSS, r.Error)
	}
	points := r.Typical().Points
	if last := points[len(points)-1]; last.RSSBytes > 10e6 {
		t.Errorf("the last sample has %d: there was nothing to tell apart", last.RSSBytes)
	}
}

// What is over at once is not measured, and says so.
func TestOverAtOnce(t *testing.T) {
	t.Parallel()
	var r Result
	for range 20 { // on a busy machine it may be there for a while
		if r = mustCompare(t, Spec{Command: shell("echo bad luck; exit 3")}, plain(t), 1).Results[0]; r.Runs == 0 {
			break
		}
	}
	if r.Runs != 0 || r.FinalRSS != nil || !strings.HasPrefix(*r.Error, "it ended after ") ||
		!strings.HasSuffix(*r.Error, " with exit code 3, before it could be measured: bad luck") {
		t.Errorf("%+v", r)
	}
	// A little later it is: the last sample is near the end.
	c := mustCompare(t, Spec{Command: shell("x=$(head -c 5000000 /dev/zero | tr '\\0' x); sleep 0.1")}, plain(t), 1)
	if r := c.Results[0]; r.Error != nil || *r.FinalRSS < 5e6 {
		t.Errorf("%+v, %v", r, r.Error)
	}
}
