package timeline

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/test/short"
	"github.com/ashlar-mem/ashlar/trace"
)

// flatBlock is a block of a map, of whatever segment.
type flatBlock struct {
	Address, Size uint64
	State         BlockState
}

// flatSegment is a plain segment or a mapped run.
type flatSegment struct {
	Address, Size uint64
	Stream        uint64
	Kind          string
	Expandable    bool
	Blocks        []flatBlock
}

// flat lists the segments as files do: of expandable ones each mapped run.
func flat(t *testing.T, m *Map) []flatSegment {
	t.Helper()
	var out []flatSegment
	for _, s := range m.Segments {
		open := false
		size, at := uint64(0), s.Address
		for _, b := range s.Blocks {
			if b.Address != at || b.Size == 0 {
				t.Fatalf("event %d: segment %#x: block at %#x of %d, want one at %#x", m.Event, s.Address, b.Address, b.Size, at)
			}
			at += b.Size
			if b.State == BlockUnmapped {
				open = false
				continue
			}
			size += b.Size
			if !open {
				out = append(out, flatSegment{Address: b.Address, Stream: s.Stream, Kind: s.Kind.String(), Expandable: s.Expandable})
				open = true
			}
			run := &out[len(out)-1]
			run.Size += b.Size
			run.Blocks = append(run.Blocks, flatBlock{b.Address, b.Size, b.State})
		}
		if size != s.Size || at != s.Address+s.Span {
			t.Fatalf("event %d: segment %#x: blocks of %d over %d, want %d over %d", m.Event, s.Address, size, at-s.Address, s.Size, s.Span)
		}
	}
	return out
}

// mapStates are the states of a file's blocks as the map has them.
var mapStates = map[alloc.BlockState]BlockState{
	alloc.Inactive: BlockFree, alloc.ActiveAllocated: BlockAllocated, alloc.ActivePendingFree: BlockPending,
}

// listed returns what a file lists, in that form.
func listed(tr *trace.Trace) []flatSegment {
	var out []flatSegment
	for _, s := range tr.Segments {
		f := flatSegment{Address: s.Address, Size: s.TotalSize, Stream: s.Stream, Kind: s.Type, Expandable: s.Expandable}
		for _, b := range s.Blocks {
			f.Blocks = append(f.Blocks, flatBlock{b.Address, b.Size, mapStates[b.State]})
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(x, y flatSegment) int { return cmp.Compare(x.Address, y.Address) })
	return out
}

// After the last event the map is that which the file lists.
func TestTheLastMapIsThatOfTheFile(t *testing.T) {
	for _, name := range all(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name)
			l := New(tr, exact(t, tr))
			lives := NewLifetimes(l)
			if !lives.Exact {
				t.Skip("block sizes are not known")
			}
			m := NewLayout(l, lives).At(tr.Events.Len() - 1)
			if d := diff.Diff(listed(tr), flat(t, m)); d != "" {
				t.Errorf("(-file +map):\n%s", d)
			}
			if want := NewState(tr).LargestFree; m.LargestFree != want {
				t.Errorf("largest free block %d, want %d", m.LargestFree, want)
			}
		})
	}
}

// slowMap walks from the first event to one and keeps all in the simplest way.
func slowMap(l *Timeline, lives *Lifetimes, event int) []flatSegment {
	type used struct {
		size    uint64
		pending bool
	}
	blocks, plain := map[uint64]used{}, map[uint64]flatSegment{}
	pages := map[uint64]flatSegment{} // of mapped memory
	const page = 2 << 20
	setPages := func(addr, size, stream uint64, there bool, kind string) {
		for at := addr; at < addr+size; at += page {
			if delete(pages, at); there {
				pages[at] = flatSegment{Stream: stream, Kind: kind}
			}
		}
	}
	for i := range lives.Older {
		blocks[lives.Address(i)] = used{lives.Size[i], lives.Freed[i] < 0}
	}
	for _, s := range l.Start.Segments {
		if s.Expandable {
			setPages(s.Address, s.TotalSize, s.Stream, true, s.Type())
		} else {
			plain[s.Address] = flatSegment{Address: s.Address, Size: s.TotalSize, Stream: s.Stream, Kind: s.Type()}
		}
	}
	for i := range event + 1 {
		e := l.Trace.Events.At(i)
		kind := "large"
		if e.Size == 2<<20 {
			kind = "small"
		}
		switch e.Action {
		case alloc.ActionAlloc:
			blocks[e.Addr] = used{l.sizes.At(i), false}
		case alloc.ActionFreeRequested:
			blocks[e.Addr] = used{l.sizes.At(i), true}
		case alloc.ActionFreeCompleted:
			delete(blocks, e.Addr)
		case alloc.ActionSegmentAlloc:
			plain[e.Addr] = flatSegment{Address: e.Addr, Size: e.Size, Stream: e.Stream, Kind: kind}
		case alloc.ActionSegmentFree:
			delete(plain, e.Addr)
		case alloc.ActionSegmentMap, alloc.ActionSegmentUnmap:
			setPages(e.Addr, e.Size, e.Stream, e.Action == alloc.ActionSegmentMap, kind)
		}
	}
	out := slices.Collect(maps.Values(plain))
	for _, at := range slices.Sorted(maps.Keys(pages)) {
		if n := len(out); n > 0 && out[n-1].Expandable && out[n-1].Address+out[n-1].Size == at {
			out[n-1].Size += page
			continue
		}
		s := pages[at]
		s.Address, s.Size, s.Expandable = at, page, true
		out = append(out, s)
	}
	slices.SortFunc(out, func(x, y flatSegment) int { return cmp.Compare(x.Address, y.Address) })
	for i := range out {
		s := &out[i]
		at := s.Address
		for _, addr := range slices.Sorted(maps.Keys(blocks)) {
			if addr < s.Address || addr >= s.Address+s.Size {
				continue
			}
			if addr > at {
				s.Blocks = append(s.Blocks, flatBlock{at, addr - at, BlockFree})
			}
			state := BlockAllocated
			if blocks[addr].pending {
				state = BlockPending
			}
			s.Blocks = append(s.Blocks, flatBlock{addr, blocks[addr].size, state})
			at = addr + blocks[addr].size
		}
		if at < s.Address+s.Size {
			s.Blocks = append(s.Blocks, flatBlock{at, s.Address + s.Size - at, BlockFree})
		}
	}
	return out
}

// At any event the map is that of a slow walk from the first one.
func TestMapsAreThoseOfASlowWalk(t *testing.T) {
	for _, name := range short.Some([]string{
		"snapshots/streams_graphs-default", "snapshots/resnet_batches-tight-default", "snapshots/serve_generate-tight-default",
		"variety/graphs", "variety/expand_tight", "variety/expand_serve", "variety/midrun", "variety/ring",
	}, 2) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name+".pickle.gz")
			l := New(tr, exact(t, tr))
			lives := NewLifetimes(l)
			layout := NewLayout(l, lives)
			rng := rand.New(rand.NewPCG(7, 7))
			for k := range 25 {
				event := rng.IntN(tr.Events.Len()+1) - 1
				if k == 0 {
					event = -1
				}
				if d := diff.Diff(slowMap(l, lives, event), flat(t, layout.At(event))); d != "" {
					t.Fatalf("event %d (-walk +map):\n%s", event, d)
				}
			}
		})
	}
}

// Where the run is replayed, the engine has the same map.
func TestMapsAreThoseOfTheEngine(t *testing.T) {
	for _, name := range []string{"snapshots/gpt2_varlen-tight-default", "snapshots/resnet_batches-default", "snapshots/ckpt_spike-tight-default"} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			tr := open(t, name+".pickle.gz")
			l := New(tr, exact(t, tr))
			layout := NewLayout(l, NewLifetimes(l))
			v, err := verify.Run(t.Context(), tr, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p := v.Program()
			settings := p.Settings
			settings.PerProcessMemoryFraction = 1
			c := replay.Conditions{Settings: settings}
			if p.Check.Limit != nil {
				c.Limit = p.Check.Limit.Max
			}
			rng := rand.New(rand.NewPCG(3, 3))
			for checked := 0; checked < 6; {
				event := rng.IntN(tr.Events.Len())
				if a := tr.Events.Action.At(event); a != alloc.ActionFreeRequested && a != alloc.ActionAlloc || event == 0 ||
					tr.Events.Action.At(event-1) != alloc.ActionFreeCompleted {
					continue // the moment before a call that is not in the course of another
				}
				m, err := p.Hold(t.Context(), c, event)
				if err != nil {
					t.Fatal(err)
				}
				want := engineMap(m.Segments())
				got := flat(t, layout.At(event-1))
				if len(got) == 0 {
					continue
				}
				// The engine's addresses are the recorded ones, moved.
				move := want[0].Address - got[0].Address
				for i := range got {
					got[i].Address += move
					for j := range got[i].Blocks {
						got[i].Blocks[j].Address += move
					}
				}
				if d := diff.Diff(want, got); d != "" {
					t.Fatalf("event %d (-engine +map):\n%s", event, d)
				}
				checked++
			}
		})
	}
}

func engineMap(segments []alloc.Segment) []flatSegment {
	var out []flatSegment
	for i := range segments {
		s := &segments[i]
		f := flatSegment{Address: s.Address, Size: s.TotalSize, Stream: s.Stream, Kind: s.Type(), Expandable: s.Expandable}
		for _, b := range s.Blocks {
			f.Blocks = append(f.Blocks, flatBlock{b.Address, b.Size, mapStates[b.State]})
		}
		out = append(out, f)
	}
	return out
}

// Without a replay blocks have the sizes that were requested, and what rounding
// added is not taken for free memory.
func TestMapWithoutBlockSizes(t *testing.T) {
	tr := open(t, "snapshots/gpt2_varlen-default.pickle.gz")
	l := New(tr, Options{})
	lives := NewLifetimes(l)
	m := NewLayout(l, lives).At(tr.Events.Len() / 2)
	blocks := 0
	for _, s := range flat(t, m) {
		for _, b := range s.Blocks {
			blocks++
			if b.State == BlockFree && b.Size < alloc.MinBlock {
				t.Fatalf("a free block of %d bytes at %#x", b.Size, b.Address)
			}
		}
	}
	if lives.Exact || blocks < 100 {
		t.Errorf("exact %t, %d blocks", lives.Exact, blocks)
	}
}

// Blocks of segments that a cut file does not show are there nevertheless.
func TestMapOfAPartialTrace(t *testing.T) {
	whole := open(t, "variety/ring.pickle.gz")
	n := whole.Events.Len()
	l := New(part(whole, n/4, n/2), Options{})
	lives := NewLifetimes(l)
	layout := NewLayout(l, lives)
	for _, event := range []int{-1, 100, n/4 - 1} {
		got, want := 0, lives.Alive(nil, event)
		for _, s := range layout.At(event).Segments {
			for _, b := range s.Blocks {
				if b.Life >= 0 {
					got++
				}
			}
		}
		if got != len(want) || got == 0 {
			t.Errorf("event %d: %d blocks, want %d", event, got, len(want))
		}
	}
}

// The unmapped pieces of a reservation are those that were mapped before.
func TestUnmappedPieces(t *testing.T) {
	tr := open(t, "variety/expand_tight.pickle.gz")
	l := New(tr, exact(t, tr))
	layout := NewLayout(l, NewLifetimes(l))
	unmapped := 0
	for i := range tr.Events.Len() {
		if tr.Events.Action.At(i) != alloc.ActionSegmentUnmap {
			continue
		}
		e := tr.Events.At(i)
		for _, s := range layout.At(i).Segments {
			for _, b := range s.Blocks {
				if b.State == BlockUnmapped && b.Address <= e.Addr && e.Addr < b.Address+b.Size {
					unmapped++
				}
			}
		}
	}
	if unmapped == 0 {
		t.Error("no unmapped memory is shown")
	}
	if names := []string{KindSmall.String(), KindLarge.String(), KindUnknown.String()}; strings.Join(names, ",") != "small,large," {
		t.Error(names)
	}
}

func TestSegmentOf(t *testing.T) {
	for _, name := range []string{"variety/expand_tight", "snapshots/streams_graphs-default", "variety/ring"} {
		tr := open(t, name+".pickle.gz")
		l := New(tr, exact(t, tr))
		lives := NewLifetimes(l)
		layout := NewLayout(l, lives)
		for i := 0; i < lives.Len(); i += 1 + lives.Len()/20 {
			addr, size, ok := layout.SegmentOf(i)
			if at := lives.Address(i); !ok || at < addr || at+lives.Size[i] > addr+size {
				t.Errorf("%s: life %d at %#x of %d is not in the segment at %#x of %d", name, i, at, lives.Size[i], addr, size)
			}
		}
	}
}

// Random mapping and unmapping, whatever the pieces.
func TestRandomMappings(t *testing.T) {
	for seed := range uint64(short.Times(30)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tr := newTrace()
		tr.Partial = true // so that nothing but the events counts
		const page = 2 << 20
		mapped := make([]bool, 64)
		for range 200 {
			from := rng.IntN(len(mapped))
			n := 1
			for from+n < len(mapped) && mapped[from+n] == mapped[from] && rng.IntN(4) > 0 {
				n++
			}
			// Memory of the small pool is mapped page by page, and unmapped in runs.
			a := alloc.ActionSegmentUnmap
			if !mapped[from] {
				a, n = alloc.ActionSegmentMap, 1
			}
			for i := from; i < from+n; i++ {
				mapped[i] = !mapped[i]
			}
			tr.Events.Append(trace.Event{Action: a, Addr: 1<<40 + uint64(from)*page, Size: uint64(n) * page})
		}
		l := New(tr, Options{})
		lives := NewLifetimes(l)
		layout := NewLayout(l, lives)
		for i := range tr.Events.Len() {
			if d := diff.Diff(slowMap(l, lives, i), flat(t, layout.At(i))); d != "" {
				t.Fatalf("seed %d, event %d (-walk +map):\n%s", seed, i, d)
			}
		}
	}
}
