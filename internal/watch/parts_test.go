package watch

import (
	"slices"
	"testing"
	"time"
)

// One number of a block is what reading all of it says.
func TestDecodeNumber(t *testing.T) {
	var spans []span
	for i := range 40 {
		for gpu := range 2 {
			r := Row{GPU: gpu}
			for c := range r.V {
				r.V[c] = int64(1000*c + i*i%17 - 1)
			}
			r.V[Seq] = int64(i + 1)
			s := single(r)
			for g := range Gauges {
				s.low[g], s.high[g] = s.low[g]-int64(i), s.high[g]+int64(g)
			}
			spans = append(spans, s)
		}
	}
	for _, wide := range []bool{false, true} {
		data := encode(spans, wide)
		_, all, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for number := range columns {
			strips, err := decodeNumber(data, number)
			if err != nil {
				t.Fatal(err)
			}
			var got, want [][4]int64
			for _, s := range strips {
				for i := range s.seq {
					got = append(got, [4]int64{s.seq[i], s.last[i], s.low[i], s.high[i]})
				}
			}
			for i := range all {
				low, high := all[i].extremes(number)
				want = append(want, [4]int64{all[i].V[Seq], all[i].V[number], low, high})
			}
			if !slices.Equal(got, want) {
				t.Fatalf("wide %v, %s: %v, want %v", wide, Names[number], got, want)
			}
		}
		for n := range data {
			decodeNumber(data[:n], Allocated) // must not panic
		}
	}
}

// A curve has the extremes of everything that is kept, at every length, however
// often it is asked for, also after blocks have gone.
func TestCurveOfLevels(t *testing.T) {
	c := newClock()
	s := newTestServer(t, newTestHub(t, t.TempDir()), c, "")
	hello(t, s, testSession, 0)
	addHours(t, s, c, testSession, 0, 5)
	check := func() {
		t.Helper()
		spans, err := s.store.history(t.Context(), testSession)
		if err != nil {
			t.Fatal(err)
		}
		for _, back := range []time.Duration{5 * time.Minute, 20 * time.Minute, 3 * time.Hour, 5 * time.Hour} {
			for _, points := range []int{1, 7, 1000} {
				from := c.now().Add(-back)
				got, err := s.Curve(t.Context(), testSession, 0, "allocated", from, c.now(), points)
				if err != nil || len(got.Time) > points {
					t.Fatal(len(got.Time), err)
				}
				low, high := int64(maxNumber), int64(0)
				for i := range spans {
					if spans[i].V[Time] >= from.UnixMicro()+time.Minute.Microseconds() { // rows that were put together have the time of their last
						l, h := spans[i].extremes(Allocated)
						low, high = min(low, l), max(high, h)
					}
				}
				if m := slices.Max(got.High); m != high || slices.Min(got.Low) > low {
					t.Errorf("%v, %d points: %d to %d, want %d to %d", back, points, slices.Min(got.Low), m, low, high)
				}
				if !slices.IsSorted(got.Time) {
					t.Errorf("%v, %d points: the times are not in order", back, points)
				}
			}
		}
	}
	check()
	check()
	addHours(t, s, c, testSession, 5*3600, 1)
	check()
	if _, err := s.store.removeOldest(t.Context(), s.letGo); err != nil {
		t.Fatal(err)
	}
	check()
}

// The last hours in small are the same whether the server has seen them or reads
// them.
func TestSketches(t *testing.T) {
	c := newClock()
	h := newTestHub(t, t.TempDir())
	s := newTestServer(t, h, c, "")
	hello(t, s, testSession, 0)
	addHours(t, s, c, testSession, 0, 3)
	seen, err := s.Sketches(t.Context(), c.now())
	if err != nil || len(seen) != 1 {
		t.Fatal(seen, err)
	}
	later := newTestServer(t, h, c, "")
	later.Load(t.Context(), 4*time.Hour)
	read, err := later.Sketches(t.Context(), c.now())
	if err != nil || len(read) != 1 {
		t.Fatal(read, err)
	}
	for i := 1; i < SketchPieces; i++ {
		if seen[0].Allocated[i-1] < 0 || seen[0].Reserved[i-1] != 2<<30 {
			t.Fatalf("piece %d: %d, %d", i, seen[0].Allocated[i-1], seen[0].Reserved[i-1])
		}
		if d := seen[0].Allocated[i] - read[0].Allocated[i]; d < -60*4096 || d > 60*4096 {
			t.Errorf("piece %d was %d, and is read as %d", i, seen[0].Allocated[i], read[0].Allocated[i])
		}
	}
}
