package whatif

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
)

func ptr[T any](v T) *T { return &v }

func TestLimitOf(t *testing.T) {
	capped := program(t, "snapshots/resnet_batches-tight-default.pickle.gz")
	low, high := capped.Program.Check.Limit.Min, capped.Program.Check.Limit.Max
	free := program(t, "variety/graphs.pickle.gz")
	device := func(limit *uint64) *recorder.Facts {
		return &recorder.Facts{Devices: []recorder.Device{{Index: 0, LimitBytes: limit, LimitKnown: true}}}
	}
	with := func(r *run.Checked, f *recorder.Facts) *run.Checked {
		other := run.New(r.Trace, f)
		return &run.Checked{Run: other, Program: r.Program, History: r.History}
	}
	got := []Limit{
		LimitOf(capped), LimitOf(with(capped, device(ptr(low+1)))), LimitOf(with(capped, device(ptr(high+1)))), LimitOf(with(capped, device(ptr(low-1)))),
		LimitOf(with(capped, device(nil))), LimitOf(with(capped, &recorder.Facts{Device: ptr(0), LimitBytes: ptr(low + 2), LimitKnown: true})),
		LimitOf(with(capped, &recorder.Facts{Device: ptr(1), LimitBytes: ptr(low + 2), LimitKnown: true})),
		GivenLimit(capped, 5), GivenLimit(capped, 0),
	}
	want := []Bound{
		{&high, Inferred},
		{ptr(low + 1), Recorded},
		{&high, Inferred},
		{&high, Inferred},
		{&high, Inferred},
		{ptr(low + 2), Recorded},
		{&high, Inferred},
		{ptr[uint64](5), Given},
		{nil, None},
	}
	for i, l := range got {
		if l.Source != want[i].Source || l.Value() != want[i].Value() || *l.Min != low || *l.Max != high {
			t.Errorf("%d: %+v, want %+v", i, l, want[i])
		}
	}
	if l := LimitOf(free); l.Source != None || l.Bytes != nil || l.Max != nil || l.Min == nil {
		t.Errorf("%+v", l)
	}
	if l := LimitOf(with(free, device(ptr[uint64](1<<40)))); l.Source != Recorded || l.Value() != 1<<40 {
		t.Errorf("%+v", l)
	}
}

// A run that died because the device was full dies on a device of the size that
// its file shows, and lives on one that is large enough.
func TestDeviceThatWasFull(t *testing.T) {
	tr := open(t, "snapshots/gpt2_fixed-tight-default.pickle.gz").Traces[0]
	last := tr.Events.Len() - 1
	if tr.Events.Action.At(last) != alloc.ActionOOM {
		t.Fatal("the file does not end with an oom")
	}
	const left = 100 << 20
	tr.Events.Addr.Set(last, left)
	p := checked(t, tr)
	q := question(p, setting(t, "expandable_segments:True"))
	reserved := timeline.New(tr, timeline.Options{}).Peaks().OOMs[0].Totals.Reserved
	if q.Limit.Source != None || q.Memory.Source != Inferred || *q.Memory.Event != last || q.Memory.Value() != reserved+left {
		t.Fatalf("%+v, %+v", q.Limit, q.Memory)
	}
	a := ask(t, p, q)
	if f := a.Results[0].First; f == nil || *f.Event != last || !f.RecordedToo || *f.DeviceFree != left {
		t.Errorf("%+v", f)
	}
	for _, n := range a.Notes {
		if strings.HasPrefix(n, "under its own settings the replay") {
			t.Error(n)
		}
	}
	q.Memory = GivenMemory(reserved + 2<<30)
	if r := ask(t, p, q).Results[0]; r.Fails {
		t.Errorf("%+v", r.First)
	}
}

func TestMemoryOf(t *testing.T) {
	p := program(t, "variety/graphs.pickle.gz")
	if m := MemoryOf(p); m.Source != None || m.Bytes != nil || m.Event != nil {
		t.Errorf("%+v", m)
	}
	sum := uint64(0)
	for _, s := range p.Trace.Segments {
		sum += s.TotalSize
	}
	facts := &recorder.Facts{Devices: []recorder.Device{{Index: 0, FreeBytes: ptr[uint64](1 << 30)}}}
	p.Facts = facts
	if m := MemoryOf(p); m.Source != Recorded || m.Value() != max(sum+1<<30, 0) || m.Event != nil {
		t.Errorf("%+v, %d in segments", m, sum)
	}
	facts.Devices[0].Index = 1
	if m := MemoryOf(p); m.Source != None {
		t.Errorf("%+v", m)
	}
	// Old files do not say what was free at an oom.
	tr := open(t, "snapshots/leak_graph-tight-default.pickle.gz").Traces[0]
	tr.Events.Addr.Set(tr.Events.Len()-1, 0)
	if m := MemoryOf(checked(t, tr)); m.Source != None {
		t.Errorf("%+v", m)
	}
}

// The device had what the recording reserved, even if it had less at the oom.
func TestMemoryIsNotBelowThePeak(t *testing.T) {
	tr := open(t, "snapshots/gpt2_varlen-tight-default.pickle.gz").Traces[0]
	tr.Events.Addr.Set(tr.Events.Len()-1, 1)
	peaks := timeline.New(tr, timeline.Options{}).Peaks()
	if m := MemoryOf(checked(t, tr)); m.Value() != peaks.Reserved.Value || peaks.OOMs[0].Totals.Reserved+1 >= peaks.Reserved.Value {
		t.Errorf("%d, reserved %d and %d", m.Value(), peaks.OOMs[0].Totals.Reserved, peaks.Reserved.Value)
	}
}
