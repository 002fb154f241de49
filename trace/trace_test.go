package trace

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
)

// A column is a slice, however it came to its values.
func TestColumn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		equal int // values at the beginning that are equal
	}{
		{"empty", 0, 0},
		{"one", 1, 1},
		{"all equal", 3 * chunkLen, 3 * chunkLen},
		{"all different", 2*chunkLen + 7, 0},
		{"different from the middle of the first chunk on", 2 * chunkLen, 1000},
		{"different from the second chunk on", 2*chunkLen + 1, chunkLen},
		{"different from within a later chunk on", 3*chunkLen + 5, 2*chunkLen + 3},
		{"different at the last", chunkLen + 1, chunkLen},
		{"short", firstLen + 1, firstLen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Column[int64]
			var want []int64
			for i := range tt.n {
				v := int64(7)
				if i >= tt.equal {
					v = int64(i)
				}
				c.Append(v)
				want = append(want, v)
			}
			check := func() {
				t.Helper()
				if c.Len() != len(want) {
					t.Fatalf("length %d, want %d", c.Len(), len(want))
				}
				for i, v := range want {
					if c.At(i) != v {
						t.Fatalf("value %d is %d, want %d", i, c.At(i), v)
					}
				}
			}
			check()
			if c.Constant() != (tt.equal >= tt.n) {
				t.Errorf("constant is %v", c.Constant())
			}
			for i := 0; i < tt.n; i += 1 + tt.n/5 {
				c.Set(i, -1)
				want[i] = -1
			}
			check()
			for _, n := range []int{tt.n - 1, tt.n / 2, min(tt.n, chunkLen), 0} {
				if n < 0 || n > len(want) {
					continue
				}
				c.truncate(n)
				want = want[:n:n]
				check()
				for i := range 70 {
					c.Append(int64(i))
					want = append(want, int64(i))
				}
				check()
			}
		})
	}
}

func TestColumnOutOfRange(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var c Column[int]
	c.Append(1)
	c.At(1)
}

// Stacks keep every stack once, and give back what was put in.
func TestStacks(t *testing.T) {
	s := NewStacks()
	if s.Add(nil) != EmptyStack || s.Frames(NoStack) != nil || s.Frames(EmptyStack) != nil || s.Len() != 2 {
		t.Error("the empty stack")
	}
	r := rand.New(rand.NewPCG(1, 2))
	byID := map[StackID][]FrameID{}
	for range 20_000 {
		frames := make([]FrameID, 1+r.IntN(60))
		for i := range frames {
			frames[i] = FrameID(r.IntN(3))
		}
		if len(frames) > 8 {
			frames = frames[:8]
		}
		id := s.Add(frames)
		if old, ok := byID[id]; ok && !slices.Equal(old, frames) {
			t.Fatalf("stack %d is %v and %v", id, old, frames)
		}
		byID[id] = frames
	}
	long := make([]FrameID, 2*flatLen)
	byID[s.Add(long)] = long
	seen := map[string]StackID{}
	for id, frames := range byID {
		if !slices.Equal(s.Frames(id), frames) {
			t.Fatalf("stack %d is %v, want %v", id, s.Frames(id), frames)
		}
		key := cmp.Diff(nil, frames)
		if other, ok := seen[key]; ok {
			t.Fatalf("%v is stack %d and %d", frames, id, other)
		}
		seen[key] = id
		if s.Add(frames) != id {
			t.Fatalf("stack %d is added again", id)
		}
	}
	if s.Len() != len(byID)+2 {
		t.Errorf("%d stacks, want %d", s.Len(), len(byID)+2)
	}
}

func TestFrames(t *testing.T) {
	s := NewStacks()
	a, b := Frame{Name: 1, File: 2, Line: 3}, Frame{Name: 1, File: 2, Line: 3, Extra: 1}
	if s.AddFrame(a) != 0 || s.AddFrame(b) != 1 || s.AddFrame(a) != 0 || s.NumFrames() != 2 || s.Frame(1) != b {
		t.Error("frames")
	}
}

func TestStrings(t *testing.T) {
	var s Strings
	if s.Find("a") != NoString || s.Text(NoString) != "" || s.Len() != 0 {
		t.Error("the empty table")
	}
	a := s.Add("a")
	empty := s.Intern([]byte(""))
	if a == NoString || empty == NoString || a == empty || s.Intern([]byte("a")) != a || s.Find("a") != a || s.Text(a) != "a" || s.Len() != 2 {
		t.Error("texts")
	}
}

func TestEvents(t *testing.T) {
	var e Events
	reserve, err := e.ActionNamed("segment_reserve")
	if err != nil || reserve != FirstOther || e.ActionName(reserve) != "segment_reserve" {
		t.Fatalf("action %d, %v", reserve, err)
	}
	var want []Event
	pool := alloc.PoolID{First: 0, Second: 4}
	for i := range 100 {
		ev := Event{
			Action: alloc.ActionFreeRequested, Addr: uint64(i), Size: 5, Stream: uint64(i % 3), Time: int64(i),
			Stack: StackID(i % 4), Meta: StringID(i % 2),
		}
		if i%10 == 0 {
			ev.Action, ev.Pool = reserve, e.PoolRef(pool)
		}
		e.Append(ev)
		want = append(want, ev)
	}
	e.Extra = map[int]Extra{3: {{Name: "x", Value: int64(1)}}, 70: {{Name: "y"}}}
	for i, ev := range want {
		if e.At(i) != ev {
			t.Fatalf("event %d is %+v, want %+v", i, e.At(i), ev)
		}
	}

	rest := e.Cut(60)
	if e.Len() != 60 || rest.Len() != 40 || !e.Extra[3].Has("x") || e.Extra[70] != nil || !rest.Extra[10].Has("y") {
		t.Fatalf("%d and %d events, %v, %v", e.Len(), rest.Len(), e.Extra, rest.Extra)
	}
	for i := range rest.Len() {
		got, ev := rest.At(i), want[60+i]
		if rest.ActionName(got.Action) != e.ActionName(ev.Action) || (got.Pool != NoPool) != (ev.Pool != NoPool) {
			t.Fatalf("event %d is %+v, want %+v", i, got, ev)
		}
		if got.Pool != NoPool && rest.Pools[got.Pool] != pool {
			t.Fatalf("event %d has the pool %v", i, rest.Pools[got.Pool])
		}
		got.Action, got.Pool, ev.Action, ev.Pool = 0, 0, 0, 0
		if got != ev {
			t.Fatalf("event %d is %+v, want %+v", i, got, ev)
		}
	}
	all := e.Cut(0)
	if e.Len() != 0 || all.Len() != 60 || all.At(59) != want[59] {
		t.Error("cut at 0")
	}
}

func TestTooManyActions(t *testing.T) {
	var e Events
	for i := range 300 {
		if _, err := e.ActionNamed(string(rune('a'+i%26)) + string(rune('a'+i/26))); err != nil {
			return
		}
	}
	t.Error("300 actions fit a byte")
}

func TestExtra(t *testing.T) {
	x := Extra{{Name: "a", Value: nil}}
	if !x.Has("a") || x.Has("b") || x.Get("a") != nil {
		t.Error("fields")
	}
}

// Reading events makes no garbage.
func TestEventsDoNotAllocate(t *testing.T) {
	e := someEvents(100_000)
	sum := uint64(0)
	if n := testing.AllocsPerRun(3, func() {
		for i := range e.Len() {
			sum += e.At(i).Addr
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func someEvents(n int) *Events {
	e := &Events{}
	for i := range n {
		e.Append(Event{Addr: uint64(i) << 9, Size: uint64(i % 1000), Time: int64(i), Stack: StackID(i % 100)})
	}
	return e
}

func BenchmarkEventsAt(b *testing.B) {
	e := someEvents(100_000)
	sum := uint64(0)
	for b.Loop() {
		for i := range e.Len() {
			sum += e.At(i).Addr
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(e.Len()), "ns/event")
}

func BenchmarkEventsAppend(b *testing.B) {
	for b.Loop() {
		someEvents(100_000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/event")
}

func BenchmarkStacksAdd(b *testing.B) {
	s := NewStacks()
	frames := make([]FrameID, 40)
	i := uint32(0)
	for b.Loop() {
		frames[7] = FrameID(i % 20_000)
		i++
		s.Add(frames)
	}
}
