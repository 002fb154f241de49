package verify

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func open(t *testing.T, name string) *trace.Trace {
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

func run(t *testing.T, tr *trace.Trace) *Verified {
	t.Helper()
	v, err := Run(t.Context(), tr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The sizes of blocks lead to the blocks of the final state.
func TestSizes(t *testing.T) {
	for i, name := range []string{
		"snapshots/streams_graphs-default", "snapshots/streams_graphs-tight-default", "variety/ring", "variety/round", "variety/stateonly",
		"snapshots/unet_multires-tight-default", "variety/expand_serve", "variety/expand_tight", "variety/midrun",
	} {
		if i > 4 && testing.Short() {
			break // the long ones
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			tr := open(t, name)
			v := run(t, tr)
			if v.Sizes == nil || v.Sizes.extra.Len() != tr.Events.Len() {
				t.Fatalf("no sizes of %d events", tr.Events.Len())
			}
			sizes := map[uint64]uint64{}
			allocated, active := v.Sizes.AllocatedBytes, v.Sizes.ActiveBytes
			for i := range tr.Events.Len() {
				e := tr.Events.At(i)
				size := v.Sizes.At(i)
				switch e.Action {
				case alloc.ActionAlloc:
					sizes[e.Addr] = size
					allocated, active = allocated+size, active+size
				case alloc.ActionFreeRequested, alloc.ActionFreeCompleted:
					if known, ok := sizes[e.Addr]; ok && known != size {
						t.Fatalf("event %d frees %d bytes of a block of %d", i, size, known)
					}
				default:
					if size != 0 {
						t.Fatalf("event %d: a block of %d bytes", i, size)
					}
					continue
				}
				if size < e.Size {
					t.Fatalf("event %d: a block of %d bytes for %d", i, size, e.Size)
				}
				switch e.Action {
				case alloc.ActionFreeRequested:
					allocated -= size
				case alloc.ActionFreeCompleted:
					active -= size
					delete(sizes, e.Addr)
				}
			}
			for _, s := range tr.Segments {
				allocated, active = allocated-s.AllocatedSize, active-s.ActiveSize
				for _, b := range s.Blocks {
					if size, ok := sizes[b.Address]; ok && (size != b.Size || b.State == alloc.Inactive) {
						t.Errorf("%#x: found %d, the file has %d, %s", b.Address, size, b.Size, b.State)
					}
				}
			}
			if allocated != 0 || active != 0 {
				t.Errorf("at the end %d bytes too many are allocated, %d active", int64(allocated), int64(active))
			}
		})
	}
}

// At the end of a run that died the free memory is that of the file.
func TestFreeAtOOM(t *testing.T) {
	tr := open(t, "variety/expand_tight")
	want := FreeAtOOM{Event: tr.Events.Len() - 1}
	for _, s := range tr.Segments {
		for _, b := range s.Blocks {
			if b.State == alloc.Inactive {
				want.FreeBytes += b.Size
				want.LargestBytes = max(want.LargestBytes, b.Size)
			}
		}
	}
	if v := run(t, tr); len(v.OOMs) != 1 || v.OOMs[0] != want {
		t.Errorf("got %+v, want %+v", v.OOMs, want)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, open(t, "variety/ring"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A search that is spent tells how far the best reading so far goes, and spends
// no more than it may.
func TestSearchIsBounded(t *testing.T) {
	tr := open(t, "snapshots/streams_graphs-default")
	for _, tt := range []struct{ replays, events int }{{0, SearchEvents}, {1, SearchEvents}, {SearchReplays, 0}} {
		v := newVerifier(tr, Options{})
		v.most.replays, v.most.events = tt.replays, tt.events
		p, err := v.best(t.Context())
		if err != nil || p.diff == nil || p.pos == 0 || p != v.furthest {
			t.Fatalf("%+v: %+v, %v", tt, p, err)
		}
		if v.spent.replays > min(tt.replays, tt.events)+1 {
			t.Errorf("%+v: %+v spent", tt, v.spent)
		}
	}
}
