package oracle

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// Format names the layout a recording was written in.
type Format string

// The two layouts. They differ in a few names; the events of a scenario also
// say which operation caused them, and its checkpoints list zero statistics.
const (
	FormatOracle   Format = "oracle"   // seeded workloads: "workload", "total_memory"
	FormatScenario Format = "scenario" // pools, captures, pending frees: "scen", "total"
)

// Recording is a run of the real allocator: what it was asked and what it
// answered.
type Recording struct {
	Format      Format
	Torch       string  // version of PyTorch
	Workload    string  // name of the workload or scenario
	Conf        string  // PYTORCH_CUDA_ALLOC_CONF
	Fraction    float64 // per-process memory fraction; negative if none was set
	TotalMemory uint64
	Streams     []uint64 // raw handles; operations name streams by position
	Ops         []Op
	Checkpoints []Checkpoint
	Trace       []recorded.Event
	Segments    []alloc.Segment // at the end, by address
	OOMMessages []string        // of the first failing allocations, in order
}

// Checkpoint is memory_stats() at one point of the run.
type Checkpoint struct {
	Ops   int // operations done before it
	Stats map[string]int64
}

// Version returns the release of PyTorch that was recorded, 0 if the recording
// does not tell.
func (rec *Recording) Version() pytorch.Version {
	v, err := pytorch.Parse(rec.Torch)
	if err != nil {
		return 0
	}
	return v
}

// Snapshot returns what a snapshot of the recorded run would have shown: the
// events and the final segments, without the operations, the limit or the pools
// of events.
func (rec *Recording) Snapshot() (*trace.Trace, error) {
	conf, err := settings.Parse(rec.Conf)
	if err != nil {
		return nil, err
	}
	t := &trace.Trace{Strings: &trace.Strings{}, Stacks: trace.NewStacks()}
	if v := rec.Version(); v != 0 {
		t.Writer = pytorch.Exactly(v)
	}
	t.Settings = trace.Settings{Known: true, Parsed: conf, Conf: rec.Conf}
	for _, e := range rec.Trace {
		t.Events.Append(trace.Event{Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: trace.NoTime})
	}
	for i := range rec.Segments {
		t.Segments = append(t.Segments, trace.FromEngine(&rec.Segments[i], nil))
	}
	return t, nil
}
