package diff

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t testing.TB, name string) *trace.Trace {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "..", "testdata", name+".pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (x *Table) mustSides(t testing.TB, tr *trace.Trace, at ...At) []*Side {
	t.Helper()
	sides, err := x.Sides(t.Context(), Source{File: "file", Run: run.New(tr, nil)}, at)
	if err != nil {
		t.Fatal(err)
	}
	return sides
}

// rewritten returns a trace whose frames went through change. Frames for which
// it returns nothing are left out of their stacks.
func rewritten(tr *trace.Trace, change func(timeline.Frame) []timeline.Frame) *trace.Trace {
	out := *tr
	out.Strings, out.Stacks = &trace.Strings{}, trace.NewStacks()
	stack := func(id trace.StackID) trace.StackID {
		if id <= trace.EmptyStack {
			return id
		}
		var ids []trace.FrameID
		for _, f := range timeline.Frames(tr, id) {
			for _, g := range change(f) {
				ids = append(ids, out.Stacks.AddFrame(trace.Frame{Name: out.Strings.Add(g.Name), File: out.Strings.Add(g.Filename), Line: g.Line}))
			}
		}
		return out.Stacks.Add(ids)
	}
	out.Events = trace.Events{}
	for i := range tr.Events.Len() {
		out.Events.Copy(&tr.Events, i)
		out.Events.Stack.Set(i, stack(tr.Events.Stack.At(i)))
		out.Events.Meta.Set(i, trace.NoString) // of the other table, as the annotations below
	}
	out.Segments = nil
	for _, s := range tr.Segments {
		s.Blocks = append([]trace.Block{}, s.Blocks...)
		for i := range s.Blocks {
			s.Blocks[i].Stack = stack(s.Blocks[i].Stack)
		}
		out.Segments = append(out.Segments, s)
	}
	out.Annotations = nil // their names are in the other table
	return &out
}

func one(f timeline.Frame) []timeline.Frame { return []timeline.Frame{f} }

// Whatever changes about the frames of a program, nothing is lost: every stack
// is found again as what became of it.
func TestStacksAreFoundAgain(t *testing.T) {
	short.Skip(t)
	isFile := func(f timeline.Frame, names ...string) bool {
		for _, n := range names {
			if strings.HasSuffix(f.Filename, n) {
				return true
			}
		}
		return false
	}
	user := func(f timeline.Frame) bool { return isFile(f, "train.py", "variety.py") }
	for _, test := range []struct {
		name   string
		file   string
		change func(f timeline.Frame) []timeline.Frame
		how    Matched // at least; Lines counts for the rest
	}{
		{"nothing", "snapshots/gpt2_varlen-default", one, Matched{}},
		{"one line more at the top of the user's file", "snapshots/gpt2_varlen-default", func(f timeline.Frame) []timeline.Frame {
			if user(f) {
				f.Line++
			}
			return one(f)
		}, Matched{}},
		{"all files moved, each by another distance", "snapshots/llama_ckpt-default", func(f timeline.Frame) []timeline.Frame {
			f.Line += int64(len(f.Filename)) % 7
			return one(f)
		}, Matched{}},
		{"lines inserted within functions", "snapshots/moe_train-default", func(f timeline.Frame) []timeline.Frame {
			f.Line += f.Line / 50 // one more every fifty
			return one(f)
		}, Matched{}},
		{"lines deleted", "snapshots/unet_multires-default", func(f timeline.Frame) []timeline.Frame {
			if f.Line > 100 {
				f.Line -= 17
			}
			return one(f)
		}, Matched{}},
		{"other install prefix and other home", "snapshots/gpt2_varlen-default", func(f timeline.Frame) []timeline.Frame {
			f.Filename = strings.Replace(f.Filename, "/venv/lib/python3.12/site-packages/", "/opt/conda/envs/x/lib/python3.11/site-packages/", 1)
			if !strings.Contains(f.Filename, "/") {
				f.Filename = "/home/me/project/" + f.Filename
			}
			return one(f)
		}, Matched{}},
		{"other prefix and moved lines", "snapshots/llama_ckpt-default", func(f timeline.Frame) []timeline.Frame {
			f.Filename = strings.Replace(f.Filename, "/venv/lib/python3.12/", "/usr/lib/python3/", 1)
			f.Line += 3
			return one(f)
		}, Matched{}},
		{"a new wrapper around the program", "snapshots/gpt2_varlen-default", func(f timeline.Frame) []timeline.Frame {
			if f.Name == "<module>" {
				return []timeline.Frame{{Name: "launch", Filename: "launch.py", Line: 7}, {Name: "<module>", Filename: "launch.py", Line: 70}}
			}
			return one(f)
		}, Matched{Site: 20}},
		{"compiled code at other addresses", "variety/cppstacks", func(f timeline.Frame) []timeline.Frame {
			f.Filename = strings.Replace(f.Filename, "tmpxft_0000", "tmpxft_1234", 1)
			if strings.HasPrefix(f.Name, "_PyEval") {
				f.Name += fmt.Sprintf("+0x%x", len(f.Name)*4711)
			}
			return one(f)
		}, Matched{}},
		{"files that torch.compile generated anew", "variety/compile", func(f timeline.Frame) []timeline.Frame {
			if base := filepath.Base(f.Filename); inductorFile.MatchString(base) {
				f.Filename = "/scratch/inductor/aa/c" + strings.Repeat("a", 50) + string(base[3]) + ".py"
			}
			return one(f)
		}, Matched{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tr := open(t, test.file)
			x := NewTable()
			a := x.mustSides(t, tr, Peak)[0]
			b := x.mustSides(t, rewritten(tr, test.change), Peak)[0]
			d := x.Compare(a, b)
			checkDiff(t, d)
			if d.Same.Stacks != len(d.Stacks) || len(d.Stacks) < 10 || len(d.Stacks) != len(a.holders) {
				t.Errorf("%d stacks: %+v same, %+v grown, %+v shrunk, %+v new, %+v gone", len(d.Stacks), d.Same, d.Grown, d.Shrunk, d.New, d.Gone)
			}
			// Sizes are the same by chance now and then; so look at the frames.
			for _, s := range d.Stacks {
				from := s.AFrames
				if from == nil {
					from = s.Frames
				}
				var want []timeline.Frame
				for _, f := range from {
					want = append(want, test.change(f)...)
				}
				if got := fmt.Sprint(s.Frames); got != fmt.Sprint(want) {
					t.Errorf("%s by %s: got %s, want %s", s.Change, *s.Matched, got, fmt.Sprint(want))
				}
			}
			if d.Matched.Site < test.how.Site || test.how.Site == 0 && d.Matched.Site > 0 {
				t.Errorf("%+v", d.Matched)
			}
		})
	}
}

// checkDiff looks at what holds for all comparisons.
func checkDiff(t testing.TB, d *Diff) {
	t.Helper()
	var sum, kinds int64
	var a, b uint64
	ablocks, bblocks := 0, 0
	for i, s := range d.Stacks {
		sum += s.Delta
		a, b = a+s.ABytes, b+s.BBytes
		ablocks, bblocks = ablocks+s.ABlocks, bblocks+s.BBlocks
		if i > 0 && magnitude(s.Delta) > magnitude(d.Stacks[i-1].Delta) {
			t.Errorf("stack %d is not in order", i)
		}
		if i >= d.Changed() != (s.Change == Same) {
			t.Errorf("stack %d of %d changed ones is %s", i, d.Changed(), s.Change)
		}
	}
	for _, c := range []Changes{d.Grown, d.Shrunk, d.New, d.Gone, d.Same} {
		kinds += c.Delta
	}
	if sum != d.Delta || kinds != d.Delta || d.Delta != int64(b-a) || a != d.ABytes || b != d.BBytes {
		t.Errorf("the differences are %d in all, by kind %d, of the sums %d; %d to %d, %d to %d", sum, kinds, d.Delta, a, d.ABytes, b, d.BBytes)
	}
	if ablocks != d.A.Blocks || bblocks != d.B.Blocks {
		t.Errorf("%d and %d blocks, want %d and %d", ablocks, bblocks, d.A.Blocks, d.B.Blocks)
	}
	if d.Sizes == BlockSizes && (a != *d.A.Active || b != *d.B.Active) {
		t.Errorf("%d and %d bytes, want %d and %d", a, b, *d.A.Active, *d.B.Active)
	}
	if d.Sizes == RequestedSizes && (a != *d.A.Requested || b != *d.B.Requested) {
		t.Errorf("%d and %d requested, want %d and %d", a, b, *d.A.Requested, *d.B.Requested)
	}
}

// Any two files at any moments: the sum of the differences is the difference of
// the sums.
func TestDifferencesAddUp(t *testing.T) {
	short.Skip(t)
	x := NewTable()
	var all []*Side
	for _, name := range []string{
		"snapshots/gpt2_varlen-tight-default", "snapshots/leak_graph-default", "snapshots/streams_graphs-default", "snapshots/unet_multires-tight-default",
		"variety/compile", "variety/cppstacks", "variety/expand_tight", "variety/midrun", "variety/nocontext", "variety/ring", "variety/stateonly",
	} {
		tr := open(t, name)
		at := []At{End}
		if n := tr.Events.Len(); n > 0 {
			at = append(at, Peak, Event(0), Event(n/2), Event(n-1))
		}
		all = append(all, x.mustSides(t, tr, at...)...)
	}
	for _, a := range all {
		for _, b := range all {
			checkDiff(t, x.Compare(a, b))
			if t.Failed() {
				t.Fatalf("%+v, %+v", a.At, b.At)
			}
		}
	}
}

// A program that keeps the logits of each step.
func TestLeakBetweenSteps(t *testing.T) {
	x := NewTable()
	sides := x.mustSides(t, open(t, "snapshots/leak_graph-default"), Step(3), Step(10))
	d := x.Compare(sides[0], sides[1])
	checkDiff(t, d)
	top := d.Stacks[0]
	if top.Change != Grown || top.ABlocks != 3 || top.BBlocks != 10 || top.Site.Inner.Name != "forward" || top.Site.User.Name != "w_leak_graph" {
		t.Errorf("%+v", top)
	}
	if perStep := top.Delta / 7; perStep < 26<<20 || perStep > 48<<20 {
		t.Errorf("%d bytes per step", perStep)
	}
	if *d.A.At.Step != 3 || *d.B.At.Step != 10 || !d.OneFile() {
		t.Errorf("%+v, %+v", d.A.At, d.B.At)
	}
}

// The same program with recorded C++ frames and without: they are left out.
func TestCompiledFramesOfOneSideOnly(t *testing.T) {
	x := NewTable()
	a := x.mustSides(t, open(t, "snapshots/gpt2_fixed-default"), Peak)[0]
	b := x.mustSides(t, open(t, "variety/cppstacks"), Peak)[0]
	for _, d := range []*Diff{x.Compare(a, b), x.Compare(b, a)} {
		checkDiff(t, d)
		if d.Changed() != 0 || len(d.Stacks) < 20 || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "compiled code") {
			t.Errorf("%d of %d changed; %q", d.Changed(), len(d.Stacks), d.Notes)
		}
	}
}

// Of two moments the ones of which block sizes are not known are compared by
// what was requested.
func TestSizes(t *testing.T) {
	tr := open(t, "variety/midrun")
	tr.Host = true // not replayed
	x := NewTable()
	sides := x.mustSides(t, tr, End, Peak)
	other := x.mustSides(t, open(t, "variety/expand_tight"), Peak)[0]
	old := *sides[0]
	old.Requested = nil
	for _, test := range []struct {
		a, b *Side
		want string
	}{
		{sides[0], sides[0], BlockSizes},
		{sides[0], sides[1], RequestedSizes},
		{sides[1], other, RequestedSizes},
		{sides[0], other, BlockSizes},
		{&old, sides[1], MixedSizes},
		{&old, other, BlockSizes},
	} {
		d := x.Compare(test.a, test.b)
		checkDiff(t, d)
		if d.Sizes != test.want {
			t.Errorf("%s, want %s", d.Sizes, test.want)
		}
	}
	if sides[1].PeakAllocated != nil || sides[1].Allocated != nil || sides[1].PeakRequested == nil || sides[0].Device != nil {
		t.Errorf("%+v", sides[1])
	}
}

// A file that hands out an address twice is said to contradict itself; its
// bytes are those of the blocks.
func TestContradiction(t *testing.T) {
	tr := open(t, "variety/graphs")
	tr.Events.Append(tr.Events.At(1)) // an alloc
	x := NewTable()
	last := tr.Events.Len() - 1
	sides := x.mustSides(t, tr, Event(last), Event(1))
	d := x.Compare(sides[0], sides[1])
	if !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.HasPrefix(n, "A: the file contradicts itself: ") }) {
		t.Errorf("%q", d.Notes)
	}
	sum := int64(0)
	for _, s := range d.Stacks {
		sum += s.Delta
	}
	if sum != d.Delta || d.Delta != int64(d.BBytes-d.ABytes) {
		t.Errorf("%d, %d", sum, d.Delta)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	tr := open(t, "variety/graphs")
	if _, err := NewTable().Sides(ctx, Source{Run: run.New(tr, nil)}, []At{Peak}); err == nil {
		t.Error("Sides goes on")
	}
	if _, err := NewTable().Rank(ctx, Source{Run: run.New(tr, nil)}, ""); err == nil {
		t.Error("Rank goes on")
	}
}
