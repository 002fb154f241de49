package view

import (
	"fmt"
	"math"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/view/http"
	"github.com/ashlar-mem/ashlar/trace"
)

// allocation is all that is known of one life.
type allocation struct {
	ID         int                 `json:"id"`
	Size       uint64              `json:"size_bytes"`
	Requested  uint64              `json:"requested_bytes"`
	Address    uint64              `json:"address"`
	Use        int                 `json:"address_use"` // of the address, from 0
	Stream     uint64              `json:"stream"`
	Pool       *[2]uint64          `json:"pool"`
	Category   findings.Category   `json:"category"`
	Confidence findings.Confidence `json:"category_confidence"`
	Segment    *segmentOf          `json:"segment"`

	Predates   bool     `json:"predates"` // it is older than the trace
	AllocEvent *int     `json:"alloc_event"`
	AllocTime  *int64   `json:"alloc_time"`
	FreeEvent  *int     `json:"free_event"`
	FreeTime   *int64   `json:"free_time"`
	Completed  *int     `json:"completed_event"`
	StateAtEnd endState `json:"state_at_end"`
	Total      uint64   `json:"total_bytes"` // active when it was allocated

	Site       *string        `json:"site"`
	Frames     []placedFrame  `json:"frames"`
	Missing    *string        `json:"frames_missing"` // why there are none
	FreeFrames []placedFrame  `json:"free_frames"`
	Meta       *string        `json:"user_metadata"`
	Compile    *string        `json:"compile_context"`
	Extra      map[string]any `json:"extra"`
}

// endState is what became of an allocation by the end of the trace.
type endState string

const (
	endAllocated endState = "allocated"
	endPending   endState = "pending"
	endFreed     endState = "freed"
)

type segmentOf struct {
	Address uint64 `json:"address"`
	Size    uint64 `json:"size_bytes"`
}

// alloc is api/alloc.
func (r *request) alloc() error {
	id := r.query.integer("id", -1, 0, math.MaxInt32)
	if id < 0 {
		r.query.bad("which allocation? give id=NUMBER")
	}
	if r.query.err != nil {
		return r.query.err
	}
	if n := r.run.lives.Len(); id >= n {
		return refuse(http.StatusNotFound, "there is no allocation %d: the run has %d", id, n)
	}
	return r.json(r.run.allocation(id))
}

func (r *pageRun) allocation(id int) *allocation {
	l := r.lives
	a := &allocation{
		ID: id, Size: l.Size[id], Requested: l.Requested(id), Address: l.Address(id), Stream: l.Stream(id), Predates: id < l.Older,
		Total: r.course.At(int(l.Born[id])).Active, Frames: []placedFrame{},
	}
	a.Category, a.Confidence = r.category(id)
	if p := l.Pool(id); p != timeline.NoPoolKnown {
		a.Pool = &[2]uint64{l.Pools[p].First, l.Pools[p].Second}
	}
	if addr, size, ok := r.layout.SegmentOf(id); ok {
		a.Segment = &segmentOf{addr, size}
	}
	for i := range id {
		if l.Address(i) == a.Address {
			a.Use++
		}
	}
	r.life(a)
	r.origin(a)
	return a
}

// life says when an allocation was there.
func (r *pageRun) life(a *allocation) {
	l := r.lives
	event := func(i int32) *int {
		if i < 0 || i == timeline.Never {
			return nil
		}
		n := int(i)
		return &n
	}
	a.AllocEvent, a.FreeEvent, a.Completed = event(l.Born[a.ID]), event(l.Freed[a.ID]), event(l.Gone[a.ID])
	if a.AllocEvent != nil {
		a.AllocTime = r.time(*a.AllocEvent)
	}
	if a.FreeEvent != nil {
		a.FreeTime = r.time(*a.FreeEvent)
	}
	switch {
	case l.Freed[a.ID] == timeline.Never:
		a.StateAtEnd = endAllocated
	case l.Gone[a.ID] == timeline.Never:
		a.StateAtEnd = endPending
	default:
		a.StateAtEnd = endFreed
	}
}

// origin says who made an allocation.
func (r *pageRun) origin(a *allocation) {
	stack := r.lives.Stack(a.ID)
	if a.Frames = r.frames(stack); len(a.Frames) > 0 {
		site := r.site(stack)
		a.Site = &site
	} else {
		missing := r.whyNoFrames(a)
		a.Missing = &missing
	}
	if a.AllocEvent == nil {
		if a.FreeEvent != nil {
			a.FreeFrames = r.frames(r.trace.Events.Stack.At(*a.FreeEvent))
		}
		return
	}
	e := r.trace.Events.At(*a.AllocEvent)
	a.Meta, a.Compile = r.text(e.Meta), r.text(e.Compile)
	if x, ok := r.trace.Events.Extra[*a.AllocEvent]; ok {
		a.Extra = plainExtra(x)
	}
}

// whyNoFrames says why an allocation has no stack.
func (r *pageRun) whyNoFrames(a *allocation) string {
	switch {
	case a.AllocEvent != nil && r.trace.Stacks.Len() <= int(trace.EmptyStack)+1:
		return "the file has no call stacks: recording with context=\"all\" and stacks keeps them"
	case a.AllocEvent != nil:
		return "made outside Python, as in the backward pass, or recorded without its stack"
	case a.FreeEvent != nil:
		return "older than the first event, so its allocation is not recorded; the stack is that of its free"
	}
	return "older than the first event, so its allocation is not recorded"
}

func (r *pageRun) frames(id trace.StackID) []placedFrame {
	out := []placedFrame{}
	for _, f := range r.trace.Stacks.Frames(id) {
		p := newPlacedFrame(r.frame(f))
		if x := r.trace.Stacks.Frame(f).Extra; x > 0 {
			p.Extra = plainExtra(r.trace.Stacks.Extra[x-1])
		}
		out = append(out, p)
	}
	return out
}

// text is a text of the trace, nil if the file does not have it.
func (r *pageRun) text(id trace.StringID) *string {
	if id == trace.NoString {
		return nil
	}
	s := r.trace.Strings.Text(id)
	return &s
}

// plainExtra is fields of a file as JSON can have them.
func plainExtra(x trace.Extra) map[string]any {
	out := make(map[string]any, len(x))
	for _, f := range x {
		out[f.Name] = plainValue(f.Value)
	}
	return out
}

func plainValue(v any) any {
	switch v := v.(type) {
	case trace.Extra:
		return plainExtra(v)
	case trace.List:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainValue(v[i])
		}
		return out
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	}
	return v
}

// allocAt is api/at: the allocation at a height of the stack of active blocks.
func (r *request) allocAt() error {
	event := r.query.event("event", r.run.events()-1, r.run)
	if r.query.has("x") {
		x := r.query.real("x", 0)
		event = int(r.run.lastBefore(min(max(math.Floor(x), 0), r.run.extent(false)-1)+1, false))
	}
	y := r.query.size("y", 0)
	if r.query.err != nil {
		return r.query.err
	}
	for _, i := range r.run.lives.Alive(nil, event) {
		if size := r.run.lives.Size[i]; y < size {
			return r.json(foundAlloc{&i})
		} else {
			y -= size
		}
	}
	return r.json(foundAlloc{})
}

type foundAlloc struct {
	Alloc *int32 `json:"alloc"`
}
