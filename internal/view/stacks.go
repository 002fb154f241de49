package view

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// The ways to look at call stacks.
const (
	viewDown     = "down"     // from the outermost frame
	viewUp       = "up"       // from the frame that allocated
	viewSandwich = "sandwich" // callers and callees of one frame
)

// stackTree is a tree as the page has it: its nodes depth first.
type stackTree struct {
	Event *int       `json:"event"` // nil if it is of a piece of the run
	Total uint64     `json:"total_bytes"`
	Nodes []treeNode `json:"nodes"`
	// Of two moments that are compared: the bytes of both.
	A uint64 `json:"a_bytes,omitempty"`
	B uint64 `json:"b_bytes,omitempty"`

	// Of a sandwich: the number of the frame in the middle, which is the first of
	// Nodes, and its callers depth first.
	Middle  *int       `json:"middle"`
	Callers []treeNode `json:"callers,omitempty"`

	Zoomed int         `json:"zoomed"` // so many frames of zoom are there
	Sites  []stackSite `json:"sites"`  // where most was allocated, of what is zoomed to
	Found  *stackFound `json:"found"`  // nil without a search
}

// stackSite is a place that allocated.
type stackSite struct {
	Site   string `json:"site"`
	Bytes  uint64 `json:"bytes"`
	Blocks int    `json:"blocks"`
	A      uint64 `json:"a_bytes,omitempty"`
	B      uint64 `json:"b_bytes,omitempty"`
	// Path leads to the node of its largest stack.
	Path []int `json:"path"`
}

// stackFound is what a search finds. Bytes under several frames that match count
// once.
type stackFound struct {
	Frames int    `json:"frames"`
	Blocks int    `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
}

// maxSites is how many places are listed.
const maxSites = 20

// weigh adds up by stacks what is chosen.
func weigh(some []int32, s *selection, bytes func(i int32) float64) map[trace.StackID]weight {
	out := map[trace.StackID]weight{}
	for _, i := range some {
		if s.has(int(i)) {
			id := s.of.stack(int(i))
			w := out[id]
			w.add(weight{bytes: bytes(i), blocks: 1})
			out[id] = w
		}
	}
	return out
}

// held adds up by stacks what is chosen and alive after an event.
func (s *selection) held(event int) map[trace.StackID]weight {
	return weigh(s.of.Alive(nil, event), s, func(i int32) float64 { return float64(s.of.Size[i]) })
}

// change adds up by stacks what is chosen at two moments.
func (s *selection) change(after, until int, width string) map[trace.StackID]weight {
	out := map[trace.StackID]weight{}
	for id, w := range s.held(after) {
		out[id] = weight{a: w.bytes, blocks: w.blocks}
	}
	for id, w := range s.held(until) {
		old := out[id]
		out[id] = weight{a: old.a, b: w.bytes, blocks: max(old.blocks, w.blocks)}
	}
	for id, w := range out {
		w.widen(width)
		out[id] = w
	}
	return out
}

// moment reads event or peak: the moment that a question is about.
func (r *request) moment() int {
	if r.query.flag("peak") {
		return r.run.allocatedPeak().Event
	}
	return r.query.event("event", r.run.events()-1, r.run)
}

// stacks is api/stacks.
func (r *request) stacks() error {
	q, of := r.query, r.stacked()
	event, area, changed, chosen := r.moment(), q.flag("area"), q.has("until"), r.selection(of)
	if q.values.Get("what") == "segments" && q.flag("peak") {
		event = r.run.peaks.Reserved.Event
	}
	from, to := q.integer("from", 0, 0, r.run.events()), q.integer("to", r.run.events(), 0, r.run.events())
	if area && from >= to && r.run.events() > 0 {
		q.bad("from %d to %d is no piece of the run", from, to)
	}
	width, after, until := q.choice("width", widthChange, widthLarger), 0, 0
	if changed {
		after, until = r.moments()
	}
	look := r.stackLook()
	if q.err != nil {
		return q.err
	}
	var weights map[trace.StackID]weight
	switch {
	case changed:
		weights = chosen.change(after, until, width)
	case area:
		weights = r.run.averages(from, to, chosen)
	default:
		weights = chosen.held(event)
	}
	out := r.run.stackTree(weights, look)
	out.Event = unless(area || changed, event)
	return r.json(out)
}

// unless is a number, or nil.
func unless(not bool, n int) *int {
	if not {
		return nil
	}
	return &n
}

// averages are what stacks held on average between two events, over time if the
// file has times.
func (r *pageRun) averages(from, to int, s *selection) map[trace.StackID]weight {
	place := func(event int) float64 { return float64(event) }
	if r.clock.First != trace.NoTime && from < to && r.clock.At(from) < r.clock.At(to-1) {
		place = func(event int) float64 { return float64(r.clock.At(min(event, to-1))) }
	}
	begin, end := place(from), place(to)
	if from >= to { // a file without events: the state is all there is
		begin, end = 0, 1
	}
	of := s.of
	some := of.Alive(nil, from-1)
	for i := of.Begun(from - 1); i < of.Begun(to-1); i++ {
		some = append(some, int32(i))
	}
	return weigh(some, s, func(i int32) float64 {
		a, b := begin, end
		if born := int(of.Born[i]); born > from {
			a = place(born)
		}
		if gone := int(of.Gone[i]); gone < to {
			b = place(gone)
		}
		return float64(of.Size[i]) * (b - a) / (end - begin)
	})
}

// stackPath is a stack with its frames as a tree has them, outermost first.
type stackPath struct {
	weight
	stack trace.StackID
	path  []trace.FrameID
}

// paths are stacks with their frames, in the order of the file. Own leaves out the
// frames of libraries, but for the one that allocated.
func (r *pageRun) paths(weights map[trace.StackID]weight, own bool) []stackPath {
	out := make([]stackPath, 0, len(weights))
	for id, w := range weights {
		p := stackPath{weight: w, stack: id}
		if own {
			p.path = timeline.OwnPath(r.trace, id, r.own())
		} else {
			p.path = slices.Clone(r.trace.Stacks.Frames(id))
			slices.Reverse(p.path)
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y stackPath) int { return int(x.stack) - int(y.stack) })
	return out
}
