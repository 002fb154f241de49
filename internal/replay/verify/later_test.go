package verify_test

import (
	"bytes"
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/later"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// programs are recordings of 2.11 whose calls later versions are given.
var programs = []string{
	"snapshots/ckpt_spike-tight-default", "snapshots/gpt2_fixed-tight-default", "snapshots/moe_train-tight-default",
	"snapshots/streams_graphs-default", "snapshots/unet_multires-default", "fresh/llama_ckpt-tight-default", "fresh/vit_mixed-tight-default",
	"variety/compile", "variety/cppstacks", "variety/expand_tight",
}

// TestLaterVersions gives the calls of recorded programs to an independent
// simulator of 2.12 and 2.13. The engine must reproduce what that writes, must find
// out which of the two it was, and must not reproduce it under the rules of 2.11.
func TestLaterVersions(t *testing.T) {
	for _, name := range programs {
		f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "..", "testdata", name+".pickle.gz"), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		recorded, _, err := f.Pick(-1)
		if err != nil {
			t.Fatal(err)
		}
		v := verified(t, recorded)
		if !v.Result.Identical || v.Result.Version != pytorch.Default {
			t.Errorf("%s: the recording itself: identical %v, rules of %v", name, v.Result.Identical, v.Result.Version)
		}
		p := v.Program()
		for _, version := range []pytorch.Version{pytorch.Of(2, 12), pytorch.Of(2, 13)} {
			t.Run(name+"/"+version.String(), func(t *testing.T) { testLater(t, p, version) })
		}
	}
}

func testLater(t *testing.T, p *replay.Program, version pytorch.Version) {
	for _, skipped := range []int{0, 2} { // all events, or the second half
		a := later.New(version >= pytorch.Of(2, 13), p.Settings.ExpandableSegments)
		perform(a, p)
		if skipped > 0 {
			a.Events = a.Events[len(a.Events)/skipped:]
		}
		tr := written(t, a)
		if tr.Writer.String() != "2.12 or later" {
			t.Fatalf("written by %v", tr.Writer)
		}
		v := verified(t, tr)
		if !v.Result.Identical {
			t.Fatalf("under the rules of %v: %v", v.Result.Version, v.Result.First)
		}
		checkAgain(t, v.Program())
		// A reservation is one segment, so in it 2.13 goes by address as 2.11 does.
		alike := p.Settings.ExpandableSegments && version == pytorch.Of(2, 13)
		if v.Result.Version != version && !alike {
			t.Errorf("fits the rules of %v", v.Result.Version)
		}
		tr.Writer = pytorch.Exactly(pytorch.Default)
		if verified(t, tr).Result.Identical && !alike {
			t.Error("identical under the rules of 2.11, too")
		}
	}
}

func verified(t *testing.T, tr *trace.Trace) *verify.Verified {
	t.Helper()
	v, err := verify.Run(t.Context(), tr, verify.Options{NoSizes: true})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkAgain runs a program under its own settings: every allocation lies where the
// trace has it, but for how far all of them were moved.
func checkAgain(t *testing.T, p *replay.Program) {
	t.Helper()
	var got, want []uint64
	for i := range p.Trace.Events.Len() {
		if e := p.Trace.Events.At(i); e.Action == alloc.ActionAlloc {
			want = append(want, e.Addr)
		}
	}
	_, err := p.Run(t.Context(), replay.Conditions{Settings: p.Settings, Observe: func(_ int, e alloc.Event) {
		if e.Action == alloc.ActionAlloc {
			got = append(got, e.Addr)
		}
	}})
	if err != nil || len(got) != len(want) {
		t.Fatalf("run again: %d allocations, want %d; %v", len(got), len(want), err)
	}
	if p.Settings.ExpandableSegments {
		return // reservations lie elsewhere
	}
	for i := range got {
		if got[i]-want[i] != got[0]-want[0] {
			t.Fatalf("run again: allocation %d is at %#x, want %#x", i, got[i], want[i]+got[0]-want[0])
		}
	}
}

// perform makes the calls of a program.
func perform(a *later.Allocator, p *replay.Program) {
	blocks := make([]*later.Block, p.Tensors())
	for i := range p.Len() {
		switch c := p.Call(i); c.Kind {
		case replay.CallAlloc:
			blocks[c.Tensor] = a.Malloc(c.Size, c.Stream, later.Pool(c.Pool))
		case replay.CallFree, replay.CallFreeLater:
			a.Free(blocks[c.Tensor], c.Kind == replay.CallFreeLater)
		case replay.CallComplete:
			a.Done(blocks[c.Tensor])
		case replay.CallEmptyCache:
			a.EmptyCache()
		case replay.CallClosePool:
			a.DeletePool(later.Pool(c.Pool))
		}
	}
}

// written returns the snapshot of an allocator, written to a file and read back.
func written(t *testing.T, a *later.Allocator) *trace.Trace {
	t.Helper()
	conf := ""
	if a.Expandable {
		conf = "expandable_segments:True"
	}
	tr := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	tr.Settings = trace.Settings{Known: true, Conf: conf, Fields: trace.Extra{
		{Name: settings.Variable, Value: conf}, {Name: "expandable_segments", Value: a.Expandable}, {Name: "graph_capture_record_stream_reuse", Value: false},
	}}
	compile, meta := tr.Strings.Add("N/A"), tr.Strings.Add("")
	stack := func(name string) trace.StackID {
		return tr.Stacks.Add([]trace.FrameID{tr.Stacks.AddFrame(trace.Frame{Name: tr.Strings.Add(name), File: tr.Strings.Add("a.py"), Line: 1})})
	}
	stacks := map[bool]trace.StackID{false: stack("step"), true: stack("empty_cache")} // what tells a flush of its own from one inside an allocation
	for i, e := range a.Events {
		action, _ := alloc.ParseAction(e.Action)
		tr.Events.Append(trace.Event{
			Action: action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: int64(i), Stack: stacks[e.Flush], Compile: compile, Meta: meta, Pool: tr.Events.PoolRef(alloc.PoolID(e.Pool)),
		})
	}
	for _, s := range a.Segments {
		tr.Segments = append(tr.Segments, segments(s)...)
	}
	slices.SortFunc(tr.Segments, func(x, y trace.Segment) int { return cmp.Compare(x.Address, y.Address) })
	var file bytes.Buffer
	if err := snapshot.WritePickle(&file, &snapshot.File{Format: "pickle", Traces: []*trace.Trace{tr}}); err != nil {
		t.Fatal(err)
	}
	f, err := snapshot.Read(t.Context(), "later", &file, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f.Traces[0]
}

// segments lists the mapped runs of a segment.
func segments(s *later.Segment) []trace.Segment {
	var out []trace.Segment
	mapped := false
	for b := s.First; b != nil; b = b.Next {
		if b.Mapped && !mapped {
			kind := "large"
			if s.Small {
				kind = "small"
			}
			out = append(out, trace.Segment{
				Address: b.Addr, Stream: s.Stream, Type: kind, Pool: alloc.PoolID(s.Pool), HasPool: true, Expandable: s.Expandable, Stack: trace.EmptyStack,
			})
		}
		if mapped = b.Mapped; mapped {
			add(&out[len(out)-1], b)
		}
	}
	return out
}

func add(s *trace.Segment, b *later.Block) {
	block := trace.Block{Address: b.Addr, Size: b.Size, RequestedSize: b.Request, Stack: trace.EmptyStack}
	s.TotalSize += b.Size
	switch {
	case b.Free:
		block.State = alloc.Inactive
	case b.Waits:
		block.State = alloc.ActivePendingFree
	default:
		block.State = alloc.ActiveAllocated
		s.AllocatedSize += b.Size
	}
	if !b.Free {
		s.ActiveSize += b.Size
		s.RequestedSize += b.Request
	}
	s.Blocks = append(s.Blocks, block)
}
