package watch

import (
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hub"
)

// addHours sends a sample each second for so many hours of a fast clock.
func addHours(t *testing.T, s *Server, c *clock, session string, from, hours int) (to int) {
	t.Helper()
	for to = from; to < from+hours*3600; {
		var list []numbers
		for range 120 {
			sample := numbers{}
			for name, v := range sampleOf(c, to+1) {
				f := float64(v)
				sample[name] = &f
			}
			at := float64(c.now().UnixMicro())
			sample["time_us"] = &at
			list = append(list, sample)
			c.add(time.Second)
			to++
		}
		if _, err := s.add(t.Context(), samples{V: 1, Session: session, Samples: list}); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func TestHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("108,000 samples")
	}
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	begin := c.now()
	hello(t, s, testSession, 0)
	n := addHours(t, s, c, testSession, 0, 30)
	spans, err := s.store.history(t.Context(), testSession)
	if err != nil {
		t.Fatal(err)
	}
	now := c.now().UnixMicro()
	rows := [3]int{} // of the last two hours, the last day, before
	last := int64(0)
	for i := range spans {
		r := &spans[i]
		if r.V[Seq] <= last {
			t.Fatalf("seq %d after %d", r.V[Seq], last)
		}
		last = r.V[Seq]
		switch age := time.Duration(now-r.V[Time]) * time.Microsecond; {
		case age <= 2*time.Hour:
			rows[0]++
		case age <= 24*time.Hour:
			rows[1]++
		default:
			rows[2]++
		}
		low, high := r.extremes(Allocated)
		if low > r.V[Allocated] || high < r.V[Allocated] {
			t.Fatalf("seq %d: %d, %d, %d", last, low, r.V[Allocated], high)
		}
	}
	if last != int64(n) {
		t.Errorf("the last seq is %d of %d", last, n)
	}
	// A block more or less may still be there in the finer form.
	for i, want := range [3][2]int{{7200, 7200}, {22 * 360, 22*360 + 1800}, {6*60 - 1, 6*60 + 6*60}} {
		if rows[i] < want[0] || rows[i] > want[1] {
			t.Errorf("level %d has %d rows, want %d to %d", i, rows[i], want[0], want[1])
		}
	}
	curve, err := s.Curve(t.Context(), testSession, 0, "allocated", begin, c.now(), 100)
	if err != nil || len(curve.Time) != 100 || curve.Last[99] != int64(1<<30+n*4096) || curve.Low[0] != 1<<30+4096 {
		t.Errorf("curve: %d points, %v", len(curve.Time), err)
	}
	if _, err := s.Curve(t.Context(), testSession, 0, "colour", begin, c.now(), 100); err == nil {
		t.Error("there is a curve of colour")
	}
}

// At --max-disk the oldest and finest goes first.
func TestMaxDisk(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	hello(t, s, testSession, 0)
	addHours(t, s, c, testSession, 0, 8)
	full := func() (n [len(levels)]uint64) {
		for i, l := range s.store.levels {
			state, err := l.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n[i] = state.Messages
		}
		return n
	}
	before := full()
	total, err := s.store.bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.opts.MaxDisk = total - total/20
	if err := s.shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := full()
	if after[0] >= before[0] || after[1] != before[1] || after[2] != before[2] || len(s.Status().Notes) != 1 {
		t.Errorf("blocks before %v, after %v", before, after)
	}
	s.opts.MaxDisk = 1
	if err := s.shrink(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := full(); after != [len(levels)]uint64{} {
		t.Errorf("blocks: %v", after)
	}
	if _, err := s.store.levels[0].Last(t.Context(), testSession); err != hub.ErrNone {
		t.Error(err)
	}
}
