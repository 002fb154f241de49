package prognosis

import (
	"maps"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/replay"
)

// chain adds steps to a recording.
type chain struct {
	h     *history
	edit  Edit
	to    *replay.Extension
	steps []link // from the step that failed on
	live  map[int32]uint64
	gone  map[int32]bool // recorded tensors that were freed meanwhile
	due   map[int][]int32
	level uint64
	ends  []int    // event at which each link ends
	peaks []uint64 // of level, in each link
	kept  []uint64 // bytes that nobody will free, of each link
	like  []int32  // of each tensor that was added: the recorded one in whose place it is; -1 if none
	last  func()   // what a step does at its end; nil for nothing
}

// link is a step of the chain: the template it is played from, and the tensors
// of its allocations.
type link struct {
	template int
	tensors  []int32
}

// newChain begins with the recorded calls, as an edit changes them. Requests that
// failed before are left out: nobody knows what the program would have done.
func newChain(h *history, edit Edit) *chain {
	c := &chain{
		h: h, edit: edit, to: h.program.Extend(0), live: map[int32]uint64{}, gone: map[int32]bool{}, due: map[int][]int32{}, level: h.level,
	}
	var drop []int32
	step, border := -1, h.border(-1)
	for i := range h.cut {
		for i == border {
			for _, t := range drop {
				c.freeRecorded(t, i)
			}
			drop = drop[:0]
			step++
			border = h.border(step)
		}
		call := h.program.Call(i)
		switch call.Kind {
		case replay.CallTry:
			continue
		case replay.CallAlloc:
			position := int(h.at[call.Tensor])
			size := edit.size(position, call.Size)
			if size == 0 {
				c.gone[int32(call.Tensor)] = true
			}
			if a := &h.allocs[position]; a.freed < 0 {
				c.level -= tight.Round(call.Size)
				if size > 0 {
					c.level += tight.Round(size)
				}
			}
			if size == 0 {
				continue
			}
			call.Size = size
			if edit.drops(position) {
				drop = append(drop, int32(call.Tensor))
			}
		case replay.CallFree, replay.CallFreeLater:
			if c.gone[int32(call.Tensor)] {
				continue
			}
			c.gone[int32(call.Tensor)] = h.at[call.Tensor] >= 0
		}
		c.to.Repeat(call)
	}
	c.due[0] = append(c.due[0], drop...)
	return c
}

// border returns the first call of the step after one.
func (h *history) border(step int) int {
	if step+1 < len(h.begin) {
		return h.begin[step+1]
	}
	return h.cut + 1
}

// freeRecorded frees a recorded tensor before a call, earlier than it was.
func (c *chain) freeRecorded(tensor int32, call int) {
	if c.gone[tensor] {
		return
	}
	c.gone[tensor] = true
	if a := &c.h.allocs[c.h.at[tensor]]; a.freed < 0 {
		c.level -= min(c.level, tight.Round(c.edit.size(int(c.h.at[tensor]), a.size)))
	}
	c.to.Repeat(replay.Call{Kind: replay.CallFree, Tensor: int(tensor), Event: c.h.program.Call(call).Event})
}

// expect notes when the tensors go that the failing step has made so far: when
// those of its template did.
func (c *chain) expect(template int) {
	q := c.h.failing()
	for i := c.h.first[q]; i < c.h.first[q+1]; i++ {
		if c.h.allocs[i].freed >= 0 {
			continue
		}
		if twin, ok := c.h.twin(i, template); ok {
			if age := c.h.age(twin); age >= 0 {
				c.due[age] = append(c.due[age], c.h.allocs[i].tensor)
			}
		}
	}
}

// add appends an allocation to the last link, in the place of a recorded tensor.
func (c *chain) add(call replay.Call, like int32) int32 {
	call.Kind, call.Tensor = replay.CallAlloc, -1
	_, tensor := c.to.Add(call)
	c.like = append(c.like, like)
	bytes := tight.Round(call.Size)
	c.live[int32(tensor)] = bytes
	c.level += bytes
	last := len(c.steps) - 1
	c.peaks[last] = max(c.peaks[last], c.level)
	return int32(tensor)
}

// free frees a tensor, unless that was done.
func (c *chain) free(tensor int32) {
	bytes, added := c.live[tensor]
	switch {
	case added:
		delete(c.live, tensor)
	case int(tensor) < len(c.h.at) && c.h.at[tensor] >= 0 && c.h.allocs[c.h.at[tensor]].freed < 0 && !c.gone[tensor]:
		c.gone[tensor] = true
		bytes = tight.Round(c.edit.size(int(c.h.at[tensor]), c.h.allocs[c.h.at[tensor]].size))
	default:
		return
	}
	c.level -= min(c.level, bytes)
	c.to.Add(replay.Call{Kind: replay.CallFree, Tensor: int(tensor)})
}

// play appends a step as its template went, from a call on. size gives the sizes
// of its allocations. If the request is given, it takes the place of the first.
func (c *chain) play(template, from int, size func(position int) uint64, request *replay.Call) {
	h := c.h
	cur := len(c.steps)
	c.steps = append(c.steps, link{template: template, tensors: make([]int32, h.first[template+1]-h.first[template])})
	c.peaks, c.kept = append(c.peaks, c.level), append(c.kept, 0)
	tensors := c.steps[cur].tensors
	for i := range tensors {
		tensors[i] = -1
	}
	waits := map[uint64]int32{}
	for i := from; i < h.end(template); i++ {
		call := h.program.Call(i)
		switch call.Kind {
		case replay.CallAlloc:
			position := int(h.at[call.Tensor])
			age := h.age(position)
			if age == forever && h.once(position) && request == nil {
				continue
			}
			if request != nil {
				call.Size, call.Stream, call.Pool = request.Size, request.Stream, request.Pool
				request = nil
			} else {
				call.Size = size(position)
			}
			if call.Size = c.edit.size(position, call.Size); call.Size == 0 {
				continue
			}
			if c.edit.drops(position) {
				age = 0
			}
			t := c.add(call, h.allocs[position].tensor)
			tensors[position-h.first[template]] = t
			if age == forever {
				c.kept[cur] += tight.Round(call.Size)
			} else if age > 0 || c.edit.drops(position) {
				c.due[cur+age] = append(c.due[cur+age], t)
			}
		case replay.CallFree:
			if t := c.counterpart(call.Tensor, template); t >= 0 {
				c.free(t)
			}
		case replay.CallFreeLater:
			if t := c.counterpart(call.Tensor, template); t >= 0 {
				waits[call.Stream] = t
			}
		case replay.CallComplete:
			if t, ok := waits[call.Stream]; ok {
				c.free(t)
				delete(waits, call.Stream)
			}
		case replay.CallEmptyCache:
			c.to.Add(replay.Call{Kind: replay.CallEmptyCache, Tensor: -1})
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(waits)) {
		c.free(waits[stream])
	}
	if c.last != nil {
		c.last()
	}
	for _, t := range c.due[cur] {
		c.free(t)
	}
	c.end()
}

// end ends the last link.
func (c *chain) end() {
	at, _ := c.to.Add(replay.Call{Kind: replay.CallSnapshot, Tensor: -1})
	c.ends = append(c.ends, at)
}

// counterpart returns the tensor that the last link has in the place of one of
// its template; -1 if none.
func (c *chain) counterpart(tensor, template int) int32 {
	h := c.h
	position := int(h.at[tensor])
	if position < 0 || h.allocs[position].step < 0 {
		return -1 // it is older than the steps
	}
	back := template - int(h.allocs[position].step)
	if back < 0 {
		return -1
	}
	at := len(c.steps) - 1 - back
	if at < 0 {
		// A recorded step before the one that failed.
		if i, ok := h.find(h.failing()+at, h.allocs[position].key); ok {
			return h.allocs[i].tensor
		}
		return -1
	}
	l := &c.steps[at]
	i, ok := position, true
	if int(h.allocs[position].step) != l.template {
		i, ok = h.twin(position, l.template)
	}
	if ok {
		if t := l.tensors[i-h.first[l.template]]; t >= 0 {
			return t
		}
	}
	if at == 0 { // recorded, before the failure
		if i, ok := h.find(h.failing(), h.allocs[position].key); ok {
			return h.allocs[i].tensor
		}
	}
	return -1
}

// request adds the request alone, in the place of a recorded tensor.
func (c *chain) request(like int32) {
	c.steps = append(c.steps, link{})
	c.peaks, c.kept = append(c.peaks, c.level), append(c.kept, 0)
	request := c.h.request
	if request.Size = c.edit.size(-1, request.Size); request.Size > 0 {
		c.add(request, like)
	}
}
