package main

import (
	"bytes"
	"cmp"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/atomicfile"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// snapshot is the state of one device, or of all for -1.
func (l *library) snapshot(n int) (*snapshot.File, error) {
	if n >= 0 {
		if _, err := l.device(n); err != nil {
			return nil, err
		}
	}
	var states []alloc.Snapshot
	var host, dropped uint64
	err := l.eachDevice(func(d *device) error {
		if n < 0 || n == d.number {
			states = addState(states, d.alloc.Snapshot())
			if d.space != nil {
				s := d.space.Stats()
				host, dropped = host+s.Host, dropped+s.Dropped
			}
		}
		return nil
	})
	if len(states) == 0 { // nothing was used yet, and the settings are known all the same
		l.mu.Lock()
		states = append(states, alloc.Snapshot{Settings: l.cfg.engine})
		l.mu.Unlock()
	}
	f := snapshot.FromEngine(states...)
	for _, t := range f.Traces {
		t.Settings.Fields = settingsFields(t.Settings.Conf, t.Settings.Parsed)
		for _, k := range []struct {
			name  string
			bytes uint64
		}{{snapshot.HostBytesKey, host}, {snapshot.DroppedBytesKey, dropped}} {
			if k.bytes > 0 {
				t.Settings.Fields = append(t.Settings.Fields, trace.Field{Name: k.name, Value: int64(k.bytes)})
			}
		}
	}
	return f, err
}

// addState adds the state of a tenant to that of its device, which comes before it.
func addState(states []alloc.Snapshot, s alloc.Snapshot) []alloc.Snapshot {
	i := slices.IndexFunc(states, func(o alloc.Snapshot) bool { return o.Device == s.Device })
	if i < 0 {
		return append(states, s)
	}
	of := &states[i]
	of.Segments = append(of.Segments, s.Segments...)
	slices.SortFunc(of.Segments, func(a, b alloc.Segment) int { return cmp.Compare(a.Address, b.Address) })
	of.Events = append(of.Events, s.Events...)
	slices.SortStableFunc(of.Events, func(a, b alloc.Event) int { return cmp.Compare(a.Time, b.Time) })
	return states
}

// settingsFields are the allocator_settings of a snapshot (spec 10.8).
func settingsFields(conf string, s settings.Settings) trace.Extra {
	divisions := make(trace.Extra, len(s.RoundupPower2Divisions))
	for i, d := range s.RoundupPower2Divisions {
		divisions[i] = trace.Field{Name: strconv.Itoa(1 << i), Value: int64(d)}
	}
	return trace.Extra{
		{Name: settings.Variable, Value: conf},
		{Name: "max_split_size", Value: int64(s.MaxSplitSize)},
		{Name: "garbage_collection_threshold", Value: s.GarbageCollectionThreshold},
		{Name: "expandable_segments", Value: s.ExpandableSegments},
		{Name: "pinned_num_register_threads", Value: int64(s.PinnedNumRegisterThreads)},
		{Name: "release_lock_on_cudamalloc", Value: s.ReleaseLockOnMalloc},
		{Name: "pinned_use_cuda_host_register", Value: s.PinnedUseHostRegister},
		{Name: "graph_capture_record_stream_reuse", Value: s.GraphCaptureRecordStreamReuse},
		{Name: "roundup_power2_divisions", Value: divisions},
	}
}

// encode writes a snapshot somewhere, in one of the forms of package snapshot.
func (l *library) encode(w io.Writer, n int, form func(io.Writer, *snapshot.File) error) error {
	f, err := l.snapshot(n)
	if err != nil {
		return err
	}
	defer runtime.GC() // a snapshot leaves more behind than everything else
	return form(w, f)
}

func (l *library) encoded(n int, form func(io.Writer, *snapshot.File) error) ([]byte, error) {
	var b bytes.Buffer
	err := l.encode(&b, n, form)
	return b.Bytes(), err
}

// writeSnapshot writes the file that torch.cuda.memory._dump_snapshot would
// have written. The file appears whole or not at all.
func (l *library) writeSnapshot(path string, n int) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := l.encode(f, n, snapshot.WritePickle); err != nil {
		return err
	}
	return f.Commit()
}
