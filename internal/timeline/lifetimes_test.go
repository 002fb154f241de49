package timeline

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/trace"
)

// part returns the trace as a file would have it that ends within the events.
func part(tr *trace.Trace, from, to int) *trace.Trace {
	p := *tr
	p.Partial = to < tr.Events.Len()
	p.Events = trace.Events{}
	for i := from; i < to; i++ {
		p.Events.Copy(&tr.Events, i)
	}
	return &p
}

// The sums over lives are the totals that a walk from the first event finds,
// whether block sizes are known or not.
func TestCourseIsThatOfTheCursor(t *testing.T) {
	for _, name := range all(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name)
			for _, o := range []Options{exact(t, tr), {}} {
				l := New(tr, o)
				lives := NewLifetimes(l)
				course := NewTotalsIndex(l, lives)
				level := course.At(-1)
				c := l.Cursor()
				for c.Next() {
					course.Step(&level, c.Index)
					active := c.Totals.Requested
					allocated := c.Totals.Requested - c.Totals.Pending
					if l.Exact {
						active, allocated = c.Totals.Active, c.Totals.Allocated
					}
					want := Level{c.Totals.Reserved, allocated, active, c.Totals.Requested}
					if level != want {
						t.Fatalf("exact %t, event %d: %+v, want %+v", l.Exact, c.Index, level, want)
					}
					if c.Index%37 == 0 && course.At(c.Index) != level {
						t.Fatalf("event %d: At is %+v, a walk %+v", c.Index, course.At(c.Index), level)
					}
				}
				if course.At(tr.Events.Len()-1) != level {
					t.Errorf("at the end: %+v, want %+v", course.At(tr.Events.Len()-1), level)
				}
			}
		})
	}
}

func TestHighest(t *testing.T) {
	tr := open(t, "snapshots/streams_graphs-default.pickle.gz")
	l := New(tr, exact(t, tr))
	course := NewTotalsIndex(l, NewLifetimes(l))
	rng := rand.New(rand.NewPCG(1, 2))
	n := tr.Events.Len()
	for range 300 {
		first := rng.IntN(n)
		last := min(n-1, first+rng.IntN(1+rng.IntN(n)))
		high, pending := course.At(first-1), uint64(0)
		pending = high.Pending()
		for i := first; i <= last; i++ {
			level := course.At(i)
			high.raise(&level)
			pending = max(pending, level.Pending())
		}
		if got, p := course.Highest(first, last); got != high || p != pending {
			t.Fatalf("%d to %d: %+v and %d pending, want %+v and %d", first, last, got, p, high, pending)
		}
	}
	if high, _ := course.Highest(5, 4); high != course.At(4) {
		t.Errorf("of no event: %+v", high)
	}
}

// What is alive by the index is alive by looking at all, and adds up.
func TestAlive(t *testing.T) {
	for _, name := range []string{"snapshots/streams_graphs-tight-default", "variety/ring", "variety/midrun", "variety/stateonly"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tr := open(t, name+".pickle.gz")
			l := New(tr, exact(t, tr))
			lives := NewLifetimes(l)
			course := NewTotalsIndex(l, lives)
			rng := rand.New(rand.NewPCG(1, 2))
			n := tr.Events.Len()
			for k := range 200 {
				event := rng.IntN(n+1) - 1
				switch k {
				case 0:
					event = -1
				case 1:
					event = n - 1
				}
				var want []int32
				sum := Level{Reserved: course.At(event).Reserved}
				for i := range lives.Len() {
					if int(lives.Born[i]) <= event && event < int(lives.Gone[i]) {
						want = append(want, int32(i))
						sum.Active += lives.Size[i]
						sum.Requested += lives.Requested(i)
						if !lives.Pending(i, event) {
							sum.Allocated += lives.Size[i]
						}
					}
				}
				if got := lives.Alive(nil, event); !slices.Equal(got, want) {
					t.Fatalf("after event %d: %d lives, want %d", event, len(got), len(want))
				}
				if sum != course.At(event) {
					t.Fatalf("after event %d: %+v, want %+v", event, sum, course.At(event))
				}
			}
			for i := range n {
				if id := lives.BlockOf(i); id >= 0 && lives.Address(id) != tr.Events.Addr.At(i) {
					t.Fatalf("event %d is about %#x, not %#x", i, tr.Events.Addr.At(i), lives.Address(id))
				}
			}
		})
	}
}

// The stacks of lives at the end are those of the blocks that the file shows.
func TestStacksOfLives(t *testing.T) {
	for _, name := range all(t) {
		tr := open(t, name)
		l := New(tr, Options{})
		lives := NewLifetimes(l)
		sums := map[trace.StackID]int{}
		for _, i := range lives.Alive(nil, tr.Events.Len()-1) {
			stack := lives.Stack(int(i))
			if stack == trace.EmptyStack {
				stack = trace.NoStack
			}
			sums[stack]++
		}
		for _, h := range Holders(tr) {
			if sums[h.Stack] != h.Blocks {
				t.Errorf("%s: %d lives of stack %d, the file has %d", name, sums[h.Stack], h.Stack, h.Blocks)
			}
		}
	}
}

// A partial trace that begins mid-run knows older blocks by their frees.
func TestLivesOfPartialTraces(t *testing.T) {
	whole := open(t, "variety/ring.pickle.gz")
	n := whole.Events.Len()
	tr := part(whole, n/4, n/2)
	l := New(tr, Options{})
	lives := NewLifetimes(l)
	course := NewTotalsIndex(l, lives)
	if lives.Older == 0 || lives.Found != lives.Older || !l.AtLeast {
		t.Fatalf("%d older lives, %d found, at least: %t", lives.Older, lives.Found, l.AtLeast)
	}
	if at, before := course.At(-1), l.Before(); at.Requested != before.Requested || at.Reserved != before.Reserved {
		t.Errorf("before the first event: %+v, want %+v", at, before)
	}
}

func TestClock(t *testing.T) {
	tr := newTrace()
	for _, at := range []int64{10, 20, 15, trace.NoTime, 20, 30} {
		tr.Events.Append(trace.Event{Time: at})
	}
	c := NewClock(tr)
	if c.First != 10 || c.Last != 30 {
		t.Errorf("from %d to %d", c.First, c.Last)
	}
	for _, x := range []struct {
		time int64
		want int
	}{{5, 0}, {10, 0}, {11, 1}, {20, 1}, {21, 5}, {30, 5}, {31, 6}} {
		if got := c.Before(x.time); got != x.want {
			t.Errorf("before %d: %d events, want %d", x.time, got, x.want)
		}
	}
	none := newTrace()
	none.Events.Append(trace.Event{Time: trace.NoTime})
	if c := NewClock(none); c.First != trace.NoTime || c.Last != trace.NoTime {
		t.Errorf("without times: %d, %d", c.First, c.Last)
	}
}

// The path of the user's own frames ends where the memory was asked for.
func TestOwnPath(t *testing.T) {
	tr := open(t, "snapshots/gpt2_varlen-default.pickle.gz")
	own := make([]bool, tr.Stacks.NumFrames())
	for i := range own {
		own[i] = frame(tr, trace.FrameID(i)).User()
	}
	stacks := 0
	for id := range trace.StackID(tr.Stacks.Len()) {
		path := OwnPath(tr, id, own)
		site, ok := SiteOf(tr, id)
		if !ok {
			if path != nil {
				t.Fatalf("stack %d has no frames and a path of %d", id, len(path))
			}
			continue
		}
		stacks++
		if last := frame(tr, path[len(path)-1]); last != site.Inner {
			t.Fatalf("stack %d ends with %v, want %v", id, last, site.Inner)
		}
		for i, f := range path[:len(path)-1] {
			if !own[f] {
				t.Fatalf("stack %d: frame %d is %v", id, i, frame(tr, f))
			}
		}
		if site.HasUser && site.User != site.Inner && frame(tr, path[len(path)-2]) != site.User {
			t.Fatalf("stack %d: the user's frame is %v, want %v", id, frame(tr, path[len(path)-2]), site.User)
		}
	}
	if stacks < 10 {
		t.Errorf("%d stacks", stacks)
	}
}
