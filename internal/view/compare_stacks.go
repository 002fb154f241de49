package view

import (
	"context"
	"math"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// What a frame of the graph of changes is as wide as.
const (
	widthLarger = "larger" // what its stacks have on that side where they have more
	widthChange = "change" // by how much its stacks differ
)

// changeTree is the tree of two runs.
type changeTree struct {
	A     uint64     `json:"a_bytes"`
	B     uint64     `json:"b_bytes"`
	Total uint64     `json:"total_bytes"`
	Nodes []treeNode `json:"nodes"`
}

// changes is api/changes: the tree of call stacks of two runs, with the bytes of
// both. Stacks that were matched are one, under the frames that the second run
// has for it.
func (r *request) changes() error {
	q, own := r.pairQuestion(), r.query.flag("user")
	width := r.query.choice("width", widthLarger, widthChange)
	if r.query.err != nil {
		return r.query.err
	}
	return r.answer(func(ctx context.Context, out *lines) ([]byte, error) {
		d, err := r.compared(ctx, q, out)
		if err != nil {
			return nil, err
		}
		t := newChanges(d, width, own)
		found := changeTree{d.ABytes, d.BBytes, whole(t.nodes[0].total.bytes), t.flatten(nil)}
		if out == nil {
			return jsonLine(found)
		}
		return nil, out.send("changes", found)
	})
}

// widen makes the bytes of a weight what a frame of a graph of changes is as wide
// as.
func (w *weight) widen(width string) {
	if w.bytes = max(w.a, w.b); width == widthChange {
		w.bytes = math.Abs(w.b - w.a)
	}
}

func newChanges(d *diff.Diff, width string, own bool) *tree {
	var frames []timeline.Frame
	ids := map[timeline.Frame]trace.FrameID{}
	t := newEmptyTree(func(id trace.FrameID) (timeline.Frame, bool) { return frames[id], frames[id].User() })
	for i := range d.Stacks {
		s := &d.Stacks[i]
		w := weight{a: float64(s.ABytes), b: float64(s.BBytes), blocks: max(s.ABlocks, s.BBlocks)}
		w.widen(width)
		path := slices.Clone(s.Frames)
		slices.Reverse(path)
		if own {
			path = timeline.OwnFrames(s.Frames)
		}
		known := make([]trace.FrameID, len(path))
		for k, f := range path {
			id, ok := ids[f]
			if !ok {
				id = trace.FrameID(len(frames))
				ids[f] = id
				frames = append(frames, f)
			}
			known[k] = id
		}
		t.add(known, w)
	}
	t.build()
	return t
}
