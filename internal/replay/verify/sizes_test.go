package replay

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

func observeFile(t *testing.T, name string) (*trace.Trace, *Observed) {
	t.Helper()
	f, err := snapshot.Open(t.Context(), filepath.Join("..", "..", "testdata", name+".pickle.gz"), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := f.Pick(-1)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Observe(t.Context(), tr, ObserveOptions{Search: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return tr, o
}

// Observe finds what VerifyTrace finds, and block sizes that lead to the blocks
// of the final state.
func TestObserve(t *testing.T) {
	for _, name := range []string{
		"snapshots/streams_graphs-default", "snapshots/streams_graphs-tight-default", "snapshots/unet_multires-tight-default",
		"variety/expand_serve", "variety/expand_tight", "variety/midrun", "variety/ring", "variety/round", "variety/stateonly",
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tr, o := observeFile(t, name)
			r, err := VerifyTrace(t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			if o.Identical != r.Identical || o.IdenticalEvents != r.IdenticalEvents || o.SegmentsIdentical != r.SegmentsIdentical || o.Start != r.Start {
				t.Errorf("observed %+v\nverified %+v", o.Result, r)
			}
			if o.Sizes.Len() != tr.Events.Len() {
				t.Fatalf("%d sizes of %d events", o.Sizes.Len(), tr.Events.Len())
			}
			sizes := map[uint64]uint64{}
			for i := range tr.Events.Len() {
				e := tr.Events.At(i)
				size := o.Sizes.At(i)
				switch e.Action {
				case alloc.ActionAlloc:
					sizes[e.Addr] = size
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
				if e.Action == alloc.ActionFreeCompleted {
					delete(sizes, e.Addr)
				}
			}
			for _, s := range tr.Segments {
				for _, b := range s.Blocks {
					if size, ok := sizes[b.Address]; ok && (size != b.Size || b.State == "inactive") {
						t.Errorf("%#x: observed %d, the file has %d, %s", b.Address, size, b.Size, b.State)
					}
				}
			}
		})
	}
}

// At the end of a run that died the free memory is that of the file.
func TestObserveFreeAtOOM(t *testing.T) {
	tr, o := observeFile(t, "variety/expand_tight")
	want := FreeAtOOM{Event: tr.Events.Len() - 1}
	for _, s := range tr.Segments {
		for _, b := range s.Blocks {
			if b.State == "inactive" {
				want.FreeBytes += b.Size
				want.LargestBytes = max(want.LargestBytes, b.Size)
			}
		}
	}
	if len(o.OOMs) != 1 || o.OOMs[0] != want {
		t.Errorf("got %+v, want %+v", o.OOMs, want)
	}
}

func TestObserveStops(t *testing.T) {
	f, err := snapshot.Open(t.Context(), "../../testdata/variety/ring.pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Observe(ctx, f.Traces[0], ObserveOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	// Without time to search it tells how far the first reading goes.
	f, err = snapshot.Open(t.Context(), "../../testdata/snapshots/streams_graphs-default.pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{0, 1} {
		o, err := Observe(t.Context(), f.Traces[0], ObserveOptions{Search: d})
		if err != nil || o.Identical || o.IdenticalEvents == 0 || o.First == nil || o.Sizes.Len() != o.Events {
			t.Errorf("%v: %+v, %v", d, o, err)
		}
	}
}
