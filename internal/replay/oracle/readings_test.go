package oracle

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/recorded"
)

// waitedRecording returns a run in which a pending free completed only when the
// second allocation, having found nothing and been refused by the limit,
// waited for the device. The trace alone reads as if it had completed at the
// beginning of that allocation, which would then have used the block.
func waitedRecording() *Recording {
	const (
		mib      = 1 << 20
		a, b     = 0x10000000, 0x20000000
		size     = 30 * mib
		op0, op3 = 0, 3
	)
	return &Recording{
		Format: FormatScenario, Fraction: 0.05, TotalMemory: 1 << 30, Streams: []uint64{0, 77},
		Ops: []Op{
			{Kind: OpAlloc, ID: 1, Size: size, Addr: a},
			{Kind: OpRecordStream, ID: 1, Stream: 1},
			{Kind: OpFree, ID: 1},
			{Kind: OpAlloc, ID: 2, Size: size, Addr: b},
		},
		Trace: []recorded.Event{
			{Action: alloc.ActionSegmentAlloc, Addr: a, Size: size, Op: op0},
			{Action: alloc.ActionAlloc, Addr: a, Size: size, Op: op0},
			{Action: alloc.ActionFreeRequested, Addr: a, Size: size, Op: 2},
			{Action: alloc.ActionFreeCompleted, Addr: a, Size: size, Op: op3},
			{Action: alloc.ActionSegmentFree, Addr: a, Size: size, Op: op3},
			{Action: alloc.ActionSegmentAlloc, Addr: b, Size: size, Op: op3},
			{Action: alloc.ActionAlloc, Addr: b, Size: size, Op: op3},
		},
		Segments: []alloc.Segment{{
			Address: b, TotalSize: size, AllocatedSize: size, ActiveSize: size, RequestedSize: size, Large: true,
			Blocks: []alloc.Block{{Address: b, Size: size, RequestedSize: size, State: alloc.ActiveAllocated}},
		}},
	}
}

func TestCompletionWhileWaiting(t *testing.T) {
	rec := waitedRecording()
	if v, err := attempt(t.Context(), rec, nil, nil); err != nil || v.diff == nil || v.diff.Event != 4 {
		t.Fatalf("the plain reading: %v, %v; want a difference at event 4", v.diff, err)
	}
	r, err := Verify(t.Context(), rec)
	if err != nil || !r.Identical {
		t.Fatalf("%v, %v", r.First, err)
	}
	// A recording that neither reading explains keeps its first difference.
	rec = waitedRecording()
	rec.Trace[4].Size++
	r, err = Verify(t.Context(), rec)
	if err != nil || r.Identical || r.First.Event != 4 {
		t.Fatalf("%v, %v", r.First, err)
	}
}

// tinyRecording returns the beginning of a real recording, as JSON.
func tinyRecording(t testing.TB, name string) []byte {
	t.Helper()
	const ops = 40
	files, err := filepath.Glob("../../../testdata/verify/recordings/" + name + "-*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", name, err)
	}
	rec := load(t, files[0])
	d := doc()
	var rows []any
	for _, op := range rec.Ops[:ops] {
		row := []any{opNames[op.Kind]}
		switch op.Kind {
		case OpAlloc:
			row = append(row, op.ID, op.Size, op.Stream, op.Addr)
			if op.Failed {
				row[4] = -1
			}
		case OpRecordStream:
			row = append(row, op.ID, op.Stream)
		case OpNewPool:
			row = append(row, op.ID, op.Text, []uint64{op.Pool.First, op.Pool.Second})
		case OpFree, OpEnterPool, OpExitPool, OpDeletePool:
			row = append(row, op.ID)
		}
		rows = append(rows, row)
	}
	events := [][]any{}
	for _, e := range rec.Trace {
		if e.Op < ops {
			events = append(events, []any{e.Action.String(), e.Addr, e.Size, e.Stream})
		}
	}
	for key, value := range map[string]any{"ops": rows, "trace": events, "streams": rec.Streams, "stats": []int{}, "segments": []int{}} {
		b, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		d[key] = string(b)
	}
	return []byte(text(d))
}
