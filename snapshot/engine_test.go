package snapshot_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// ran is an allocator on which a random program has run.
func ran(t *testing.T, device int, conf string) *alloc.Allocator {
	t.Helper()
	set, err := settings.Parse(conf)
	if err != nil {
		t.Fatal(err)
	}
	a := alloc.New(sim.New(sim.Config{}), alloc.WithSettings(set), alloc.WithDevice(device))
	a.SetLimit(1 << 30)
	a.RecordHistory(alloc.HistoryOptions{})
	r := rand.New(rand.NewPCG(uint64(device), 1))
	var live []uint64
	for i := range 400 {
		if i == 200 {
			a.SetMetadata("second half")
		}
		if r.IntN(5) < 3 || len(live) == 0 {
			if addr, err := a.Malloc(1+r.Uint64N(1<<(1+r.Uint64N(27))), r.Uint64N(2)); err == nil {
				live = append(live, addr)
			}
			continue
		}
		n := r.IntN(len(live))
		if err := a.Free(live[n]); err != nil {
			t.Fatal(err)
		}
		live = append(live[:n], live[n+1:]...)
	}
	return a
}

// A snapshot of an allocator of this program is read back as it was written,
// and its replay is identical: nothing is missing or wrong in it.
func TestFromEngine(t *testing.T) {
	states := []alloc.Snapshot{
		ran(t, 0, "").Snapshot(),
		ran(t, 2, "expandable_segments:True").Snapshot(),
	}
	for _, s := range states {
		var file bytes.Buffer
		if err := snapshot.WritePickle(&file, snapshot.FromEngine(s)); err != nil {
			t.Fatal(err)
		}
		f, err := snapshot.Read(t.Context(), "engine", &file, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := f.Pick(s.Device)
		if err != nil {
			t.Fatal(err)
		}
		if got.Settings.Parsed != s.Settings || len(got.Segments) != len(s.Segments) || got.Events.Len() != len(s.Events) || len(s.Segments) == 0 {
			t.Errorf("device %d: %d segments, %d events under %v", s.Device, len(got.Segments), got.Events.Len(), got.Settings.Parsed)
		}
		for i, want := range s.Events {
			e := got.Events.At(i)
			back := alloc.Event{
				Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Pool: got.Events.Pools[e.Pool],
				Time: e.Time * 1000, Meta: got.Strings.Text(e.Meta),
			}
			want.Time -= want.Time % 1000
			want.Block = 0 // a file has no block sizes
			if d := cmp.Diff(want, back); d != "" {
				t.Fatalf("event %d (-want +got):\n%s", i, d)
			}
		}
		if version, ok := got.Writer.Exact(); !ok || version != pytorch.Default {
			t.Errorf("device %d: written by %v", s.Device, got.Writer)
		}
		v, err := verify.Run(t.Context(), got, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := v.Result
		if !r.Identical || r.Events < 400 {
			t.Errorf("device %d: %d of %d events identical; %v", s.Device, r.IdenticalEvents, r.Events, r.First)
		}
	}
	// Several devices in one file.
	f := snapshot.FromEngine(states...)
	var file bytes.Buffer
	if err := snapshot.WriteJSON(&file, f); err != nil {
		t.Fatal(err)
	}
	back, err := snapshot.Read(t.Context(), "engines", &file, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	events := func(f *snapshot.File) (n []int) {
		for _, t := range f.Traces {
			if len(t.Segments) > 0 {
				n = append(n, t.Device, t.Events.Len())
			}
		}
		return n
	}
	if d := cmp.Diff(events(f), events(back)); d != "" {
		t.Errorf("devices and events (-want +got):\n%s", d)
	}
}

// Without a clock and without metadata there is none in the file.
func TestFromEngineAbsent(t *testing.T) {
	f := snapshot.FromEngine(alloc.Snapshot{Events: []alloc.Event{{Action: alloc.ActionAlloc, Addr: 512, Size: 1}}, Settings: settings.Default()})
	e := f.Traces[0].Events.At(0)
	if e.Time != trace.NoTime || e.Meta != trace.NoString || e.Stack != trace.EmptyStack {
		t.Errorf("event %+v", e)
	}
}
