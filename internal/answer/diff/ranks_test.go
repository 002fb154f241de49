package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/trace"
)

func (x *Table) mustRank(t testing.TB, tr *trace.Trace, name string) *Rank {
	t.Helper()
	r, err := x.Rank(t.Context(), Source{File: name, Run: run.New(tr, nil)}, name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ranks makes n ranks of one file; change may change some.
func ranks(t testing.TB, file string, n int, change map[int]func(*trace.Trace)) *Ranks {
	t.Helper()
	x := NewTable()
	var all []*Rank
	for i := range n {
		tr := open(t, file)
		if change[i] != nil {
			change[i](tr)
		}
		all = append(all, x.mustRank(t, tr, fmt.Sprint("rank", i)))
	}
	return x.Ranks(all)
}

// without removes events, by their number.
func without(tr *trace.Trace, from, to int) {
	var rest trace.Events
	for i := range tr.Events.Len() {
		if i < from || i >= to {
			rest.Copy(&tr.Events, i)
		}
	}
	tr.Events = rest
}

// nthAlloc returns the number of an alloc event.
func nthAlloc(tr *trace.Trace, n int) int {
	for i := range tr.Events.Len() {
		if tr.Events.Action.At(i) == alloc.ActionAlloc {
			if n--; n < 0 {
				return i
			}
		}
	}
	return -1
}

func TestEqualRanks(t *testing.T) {
	rs := ranks(t, "variety/expand_tight", 4, nil)
	if len(rs.Odd) > 0 || rs.Divergence != nil || !rs.Compared || rs.Shifted || rs.Sizes != BlockSizes || len(rs.Measures) != 5 {
		t.Errorf("%+v", rs)
	}
	if rs.Common != rs.Ranks[0].Calls || rs.Common < 5000 {
		t.Errorf("%d of %d calls in common", rs.Common, rs.Ranks[0].Calls)
	}
	for i, r := range rs.Ranks {
		if r.Parts != nil || len(r.calls.pieces) < 2 || !slices.Equal(r.calls.pieces, rs.Ranks[0].calls.pieces) {
			t.Errorf("rank %d parts, or does not share its calls", i)
		}
	}
}

// One rank asks for more at one place.
func TestRanksPart(t *testing.T) {
	const at = 5000 // of the allocs; in a later piece than the first
	var event int
	change := func(tr *trace.Trace) {
		event = nthAlloc(tr, at)
		tr.Events.Size.Set(event, tr.Events.Size.At(event)+512)
	}
	rs := ranks(t, "variety/expand_tight", 5, map[int]func(*trace.Trace){2: change})
	d := rs.Divergence
	if d == nil || !d.Majority || len(d.Branches) != 2 || fmt.Sprint(d.Branches[0].Ranks, d.Branches[1].Ranks) != "[0 1 3 4] [2]" {
		t.Fatalf("%+v", d)
	}
	tr := open(t, "variety/expand_tight")
	before := 0
	for i := range event {
		switch tr.Events.Action.At(i) {
		case alloc.ActionAlloc, alloc.ActionFreeRequested, alloc.ActionOOM:
			before++
		}
	}
	most, one := d.Branches[0], d.Branches[1]
	if d.Common != before || rs.Common != before || most.Event != event || one.Event != event || most.Call != "alloc" || one.Call != "alloc" {
		t.Errorf("%+v, want %d calls in common and event %d", d, before, event)
	}
	if one.Bytes != most.Bytes+512 || most.Bytes != tr.Events.Size.At(event) {
		t.Errorf("%d and %d bytes", most.Bytes, one.Bytes)
	}
	if len(most.Frames) == 0 || most.Site.User.Name == "" {
		t.Errorf("no stack: %+v", most)
	}
	for i, r := range rs.Ranks {
		if (r.Parts != nil) != (i == 2) || r.Parts != nil && *r.Parts != event {
			t.Errorf("rank %d parts at %v", i, r.Parts)
		}
	}
}

// Ranks may leave one after the other; each is compared with those that stay.
func TestRanksPartAtDifferentPlaces(t *testing.T) {
	bump := func(n int) func(*trace.Trace) {
		return func(tr *trace.Trace) {
			i := nthAlloc(tr, n)
			tr.Events.Size.Set(i, tr.Events.Size.At(i)+1)
		}
	}
	tr := open(t, "variety/midrun")
	rs := ranks(t, "variety/midrun", 5, map[int]func(*trace.Trace){0: bump(100), 3: bump(50), 4: bump(50)})
	want := map[int]int{0: nthAlloc(tr, 100), 3: nthAlloc(tr, 50), 4: nthAlloc(tr, 50)}
	for i, r := range rs.Ranks {
		at, parts := want[i]
		if parts != (r.Parts != nil) || parts && *r.Parts != at {
			t.Errorf("rank %d parts at %v, want %d", i, r.Parts, at)
		}
	}
	if d := rs.Divergence; fmt.Sprint(d.Branches[0].Ranks, d.Branches[1].Ranks) != "[0 1 2] [3 4]" {
		t.Errorf("%+v", d)
	}
}

// Two against two: there is no majority.
func TestNoMajority(t *testing.T) {
	change := func(tr *trace.Trace) { tr.Events.Size.Set(nthAlloc(tr, 0), 1) }
	rs := ranks(t, "variety/graphs", 4, map[int]func(*trace.Trace){0: change, 2: change})
	if d := rs.Divergence; d == nil || d.Majority || d.Common != 0 || fmt.Sprint(d.Branches[0].Ranks, d.Branches[1].Ranks) != "[0 2] [1 3]" {
		t.Errorf("%+v", d)
	}
}

// A rank that was dumped earlier, and one without events, do not part.
func TestRanksThatEndEarly(t *testing.T) {
	rs := ranks(t, "variety/expand_tight", 4, map[int]func(*trace.Trace){
		1: func(tr *trace.Trace) { tr.Events.Cut(9000); tr.Partial = true },
		3: func(tr *trace.Trace) { tr.Events.Cut(0) },
	})
	if rs.Divergence != nil || rs.Ranks[1].Parts != nil || rs.Common != rs.Ranks[0].Calls || !rs.Compared {
		t.Errorf("%+v", rs)
	}
	if slices.ContainsFunc(rs.Odd, func(o Odd) bool { return o.Rank == 1 }) || !rs.Ranks[1].Partial {
		t.Errorf("the file that ends early: %+v", rs.Odd)
	}
	if !slices.ContainsFunc(rs.Notes, func(n string) bool { return strings.HasPrefix(n, "rank3: there are no events") }) {
		t.Errorf("%q", rs.Notes)
	}
	if rs = ranks(t, "variety/stateonly", 2, nil); rs.Compared || rs.Divergence != nil || len(rs.Odd) > 0 {
		t.Errorf("%+v", rs)
	}
}

// Rings of events begin anywhere. They are compared from the same moment on.
func TestRanksThatBeginAtDifferentMoments(t *testing.T) {
	const lost = 700
	event := 0
	rs := ranks(t, "snapshots/leak_graph-default", 4, map[int]func(*trace.Trace){
		0: func(tr *trace.Trace) { without(tr, 0, 2000) },
		1: func(tr *trace.Trace) { without(tr, 0, 2000+lost) },
		2: func(tr *trace.Trace) { without(tr, 0, 1900) },
		3: func(tr *trace.Trace) {
			without(tr, 0, 2100)
			event = nthAlloc(tr, 2500)
			tr.Events.Size.Set(event, 12345)
		},
	})
	d := rs.Divergence
	if !rs.Shifted || d == nil || len(d.Branches) != 2 || fmt.Sprint(d.Branches[1].Ranks) != "[3]" || d.Branches[1].Event != event {
		t.Fatalf("%+v, want event %d", d, event)
	}
	// Rank 3 begins 100 events after rank 0.
	if d.Branches[0].Event != event+100 || d.Branches[0].Ranks[0] != 0 {
		t.Errorf("%+v", d.Branches[0])
	}
}

// made returns a rank with given numbers.
func made(allocated, reserved uint64, ooms, events int) *Rank {
	r := &Rank{PeakAllocated: &allocated, PeakReserved: reserved, OOMs: ooms, Events: events, calls: &sequence{}}
	r.atPeak.Reserved, r.atPeak.Allocated = reserved, allocated
	return r
}

func TestOdd(t *testing.T) {
	const gib = 1 << 30
	same := func(n int) []*Rank {
		var out []*Rank
		for range n {
			out = append(out, made(10*gib, 12*gib, 0, 1000))
		}
		return out
	}
	for _, test := range []struct {
		name  string
		ranks []*Rank
		want  string // rank measure delta
	}{
		{"all alike", same(8), ""},
		{"one more", append(same(7), made(11*gib, 12*gib, 0, 1000)), "7 peak_allocated 1073741824 +0.10; 7 fragmentation -1073741824 -0.50"},
		{"within one percent", append(same(7), made(10*gib+gib/20, 12*gib, 0, 1000)), ""},
		{"cached by a percent of reserved", append(same(7), made(10*gib, 12*gib+gib/10, 0, 1000)), ""},
		{"out of memory", append(same(7), made(10*gib, 12*gib, 1, 1000)), "7 oom_events 1"},
		{"all out of memory but one", []*Rank{made(gib, gib, 1, 9), made(gib, gib, 1, 9), made(gib, gib, 0, 9)}, "2 oom_events -1 -1.00"},
		{"fewer events", append(same(7), made(10*gib, 12*gib, 0, 500)), "7 events -500 -0.50"},
		{"a spread, and one within it", []*Rank{
			made(10*gib, 20*gib, 0, 1), made(11*gib, 20*gib, 0, 1), made(12*gib, 20*gib, 0, 1), made(13*gib, 20*gib, 0, 1), made(15*gib, 20*gib, 0, 1),
		}, ""},
		{"a spread, and one outside", []*Rank{
			made(100*gib, 200*gib, 0, 1), made(101*gib, 200*gib, 0, 1), made(102*gib, 200*gib, 0, 1), made(103*gib, 200*gib, 0, 1), made(150*gib, 200*gib, 0, 1),
		}, "4 peak_allocated 51539607552 +0.47; 4 fragmentation -51539607552 -0.49"},
		{"two halves", append(append(same(4), made(20*gib, 30*gib, 0, 1)), made(20*gib, 30*gib, 0, 1), made(20*gib, 30*gib, 0, 1), made(20*gib, 30*gib, 0, 1)), ""},
		{"two ranks", append(same(1), made(20*gib, 30*gib, 3, 1)), ""},
		{
			"the further out comes first", append(same(6), made(11*gib, 12*gib, 0, 1000), made(2*gib, 4*gib, 0, 1000)),
			"7 peak_allocated -8589934592 -0.80; 7 peak_reserved -8589934592 -0.67; 6 peak_allocated 1073741824 +0.10; 6 fragmentation -1073741824 -0.50",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, o := range NewTable().Ranks(test.ranks).Odd {
				text := fmt.Sprint(o.Rank, " ", o.Measure)
				if o.DeltaBytes != nil {
					text += fmt.Sprint(" ", *o.DeltaBytes)
				} else {
					text += fmt.Sprint(" ", *o.DeltaCount)
				}
				if o.Fraction != nil {
					text += fmt.Sprintf(" %+.2f", *o.Fraction)
				}
				got = append(got, text)
			}
			if s := strings.Join(got, "; "); s != test.want {
				t.Errorf("got %s\nwant %s", s, test.want)
			}
		})
	}
}

// If most ranks do not know block sizes, all are compared by what was asked
// for; if only some do not, they are left out of it.
func TestRanksWithoutReplay(t *testing.T) {
	host := func(tr *trace.Trace) { tr.Host = true }
	rs := ranks(t, "variety/expand_tight", 3, map[int]func(*trace.Trace){1: host})
	if rs.Sizes != BlockSizes || len(rs.Odd) > 0 || rs.Measures[0].Name != MeasureAllocated || rs.Ranks[1].PeakAllocated != nil || rs.Ranks[1].Cached != nil {
		t.Errorf("%+v", rs)
	}
	rs = ranks(t, "variety/expand_tight", 3, map[int]func(*trace.Trace){1: host, 2: host})
	if rs.Sizes != RequestedSizes || len(rs.Odd) > 0 || rs.Measures[0].Name != MeasureRequested || rs.Ranks[1].PeakAllocated != nil {
		t.Errorf("%+v", rs)
	}
	if *rs.Ranks[0].Cached != *rs.Ranks[1].Cached || *rs.Ranks[0].Cached == 0 {
		t.Errorf("cached %d and %d", *rs.Ranks[0].Cached, *rs.Ranks[1].Cached)
	}
}

func TestSequence(t *testing.T) {
	short.Skip(t)
	tr := open(t, "snapshots/serve_generate-default")
	s := NewTable().sequence(tr)
	n := 0
	for i := range tr.Events.Len() {
		var kind string
		switch tr.Events.Action.At(i) {
		case alloc.ActionAlloc:
			kind = "alloc"
		case alloc.ActionFreeRequested:
			kind = "free"
		case alloc.ActionOOM:
			kind = "oom"
		default:
			continue
		}
		if c := s.callAt(n); c.String() != kind || c.size() != tr.Events.Size.At(i) {
			t.Fatalf("call %d is %s of %d bytes, event %d is %s of %d", n, c, c.size(), i, kind, tr.Events.Size.At(i))
		}
		if n%997 == 0 && s.event(n) != i {
			t.Fatalf("call %d is event %d, not %d", n, i, s.event(n))
		}
		n++
	}
	if n != s.length || s.event(n) != -1 {
		t.Errorf("%d calls, want %d", s.length, n)
	}
}
