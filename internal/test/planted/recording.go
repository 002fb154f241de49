package planted

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/input"
	"github.com/ashlar-mem/ashlar/internal/replay/generate"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot"
	"github.com/ashlar-mem/ashlar/trace"
)

// recording is a file of PyTorch that others are made from.
type recording struct {
	name  string
	file  *snapshot.File
	trace *trace.Trace
}

func openRecording(ctx context.Context, testdata, name string) (*recording, error) {
	f, err := snapshot.Open(ctx, filepath.Join(testdata, filepath.FromSlash(name)+".pickle.gz"), snapshot.Options{})
	if err != nil {
		return nil, err
	}
	t, _, err := input.Pick(f, input.AnyDevice)
	return &recording{name, f, t}, err
}

// factors are what the requests of stacks are multiplied by.
type factors map[trace.StackID]float64

func (f factors) with(stack trace.StackID, by float64) factors {
	out := maps.Clone(f)
	if out == nil {
		out = factors{}
	}
	if out[stack] == 0 {
		out[stack] = 1
	}
	out[stack] *= by
	return out
}

// peaks are the highest totals of a trace.
type peaks struct {
	allocated, reserved uint64
	events              int
}

// run makes the recorded calls with other sizes.
func (r *recording) run(ctx context.Context, by factors) (*snapshot.File, *peaks, error) {
	var out bytes.Buffer
	_, err := generate.Write(ctx, &out, r.trace, generate.Options{Resize: func(stack trace.StackID, size uint64) uint64 {
		if f := by[stack]; f != 0 {
			return max(1, uint64(f*float64(size)))
		}
		return size
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.name, err)
	}
	f, err := snapshot.Read(ctx, r.name, &out, snapshot.Options{})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.name, err)
	}
	p, err := peaksOf(ctx, f.Traces[0])
	return f, p, err
}

// peaksOf finds the peaks of a trace. Block sizes, which events do not have, are
// those of its replay.
func peaksOf(ctx context.Context, t *trace.Trace) (*peaks, error) {
	h, err := run.New(t, nil).History(ctx)
	if err != nil {
		return nil, err
	}
	return &peaks{h.Peaks.Allocated.Value, h.Peaks.Reserved.Value, t.Events.Len()}, nil
}

// heldAtPeak returns what each stack of the recording holds where most is
// allocated, the most first. Their numbers are those of the recording.
func (r *recording) heldAtPeak() []holder {
	t := r.trace
	live := map[trace.StackID]uint64{}
	at := map[uint64]holder{}
	var best map[trace.StackID]uint64
	var now, most uint64
	for i := range t.Events.Len() {
		switch e := t.Events.At(i); e.Action {
		case alloc.ActionAlloc:
			at[e.Addr] = holder{e.Stack, e.Size}
			live[e.Stack] += e.Size
			now += e.Size
		case alloc.ActionFreeCompleted:
			b, ok := at[e.Addr]
			if !ok {
				continue
			}
			if now > most { // the last event before a fall is where the peak is
				most, best = now, maps.Clone(live)
			}
			delete(at, e.Addr)
			live[b.stack] -= b.bytes
			now -= b.bytes
		}
	}
	if now > most {
		best = live
	}
	var out []holder
	for stack, bytes := range best {
		if site, ok := timeline.SiteOf(t, stack); ok && site.HasUser && bytes > 0 {
			out = append(out, holder{stack, bytes})
		}
	}
	slices.SortFunc(out, func(a, b holder) int {
		if a.bytes != b.bytes {
			return int(min(max(int64(b.bytes)-int64(a.bytes), -1), 1))
		}
		return int(a.stack) - int(b.stack)
	})
	return out
}

// holder is a stack and its live bytes.
type holder struct {
	stack trace.StackID
	bytes uint64
}
