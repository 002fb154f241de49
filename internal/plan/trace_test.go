package plan

import (
	"bytes"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// written is the trace of a question after a round through a file.
func written(t *testing.T, q Question) *trace.Trace {
	t.Helper()
	tr, err := Trace(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := snapshot.WritePickle(&file, &snapshot.File{Traces: []*trace.Trace{tr}}); err != nil {
		t.Fatal(err)
	}
	f, err := snapshot.Read(t.Context(), "planned", &file, snapshot.Options{})
	if err != nil || len(f.Warnings) > 0 {
		t.Fatal(err, f.Warnings)
	}
	return f.Traces[0]
}

// A planned run that is written as a snapshot replays as it was planned.
func TestTrace(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		q := under(t, question(t, "batch", "2", "seq", "600"), conf)
		a := ask(t, q)
		tr := written(t, q)
		v, err := verify.Run(t.Context(), tr, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := v.Program()
		if !p.Check.Identical {
			t.Errorf("%q: %d of %d events identical: %v", conf, p.Check.IdenticalEvents, p.Check.Events, p.Check.First)
		}
		if p.Settings != q.Settings {
			t.Errorf("%q: settings %v", conf, p.Settings)
		}
		o, err := p.Run(t.Context(), replay.Conditions{Settings: q.Settings})
		if err != nil {
			t.Fatal(err)
		}
		if o.Reserved.Bytes != a.PeakReserved || o.Allocated.Bytes != a.PeakAllocated || o.Requested.Bytes != a.PeakRequested {
			t.Errorf("%q: %d reserved, %d allocated; planned %d, %d", conf, o.Reserved.Bytes, o.Allocated.Bytes, a.PeakReserved, a.PeakAllocated)
		}
	}
}

// The tools that read snapshots find steps, phases and purposes.
func TestTraceIsUnderstood(t *testing.T) {
	tr := written(t, question(t, "batch", "2", "seq", "600"))
	program := timeline.NewAnnotations(tr)
	if program.Complete() != 3 {
		t.Errorf("%d steps", program.Complete())
	}
	a := findings.New(timeline.NewLifetimes(timeline.New(tr, timeline.Options{})), program)
	sums := map[findings.Category]uint64{}
	for _, h := range a.Holders(a.PeakEvent()).Categories {
		sums[h.Category] += h.Bytes
	}
	weights := uint64(8 * 512 * 512 * 24)
	if sums[findings.Parameters] != weights || sums[findings.OptimizerState] != 2*weights {
		t.Errorf("%v", sums)
	}
	if sums[findings.Activations] == 0 || sums[findings.Unknown] > 0 {
		t.Errorf("%v", sums)
	}
}
