package prognosis

import (
	"sort"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// key names an allocation by its place in a step: the nth of its stack. One
// without frames, as in the backward pass, is the so-manieth after the last one
// that has them.
type key struct {
	stack trace.StackID
	nth   int32
	after int32
}

// keys counts the allocations of a step.
type keys struct {
	seen map[trace.StackID]int32
	last key
}

func newKeys() *keys { return &keys{seen: map[trace.StackID]int32{}} }

func (k *keys) next(stack trace.StackID) key {
	if stack <= trace.EmptyStack {
		k.last.after++
		return k.last
	}
	k.seen[stack]++
	k.last = key{stack: stack, nth: k.seen[stack]}
	return k.last
}

// allocation is one allocation of the recording.
type allocation struct {
	key    key
	size   uint64
	call   int32
	tensor int32
	freed  int32 // call; -1 while it is there
	step   int32 // -1: before the first
}

// history is the recording up to the failure, step by step.
type history struct {
	program *replay.Program
	trace   *trace.Trace
	cut     int // the calls before the failed request
	request replay.Call
	wanted  key // of the request

	// begin has the first call of each step; what follows a step belongs to it.
	// The last one is the step that failed, if failing is true.
	begin   []int
	numbers []int // what the recording calls the steps
	allocs  []allocation
	first   []int         // step -> position of its first allocation; one more at the end
	at      []int32       // tensor -> position of its allocation; -1 for older ones
	index   []map[key]int // step -> key -> position; nil where nobody asked yet
	level   uint64        // bytes at the failure if every block were as small as can be
}

// newHistory reads the calls before the failed request.
func newHistory(p *replay.Program, steps *findings.Steps, r Request) *history {
	h := &history{program: p, trace: p.Trace, cut: r.Cut, request: r.Call, at: make([]int32, p.Tensors())}
	for _, s := range steps.List {
		if s.Begin <= r.Event {
			h.begin = append(h.begin, h.callAt(s.Begin))
			h.numbers = append(h.numbers, s.Number)
		}
	}
	if len(h.begin) == 0 && r.First < r.Event {
		h.begin = []int{h.callAt(r.First)}
	}
	for i := range h.at {
		h.at[i] = -1
	}
	names := h.read(olderSizes(p))
	h.first = append(h.first, len(h.allocs))
	h.wanted = names.next(r.Stack)
	h.index = make([]map[key]int, len(h.begin))
	return h
}

// olderSizes returns the sizes of the tensors that are there before the first
// call.
func olderSizes(p *replay.Program) (sizes []uint64) {
	for i := range p.Start.Segments {
		for _, b := range p.Start.Segments[i].Blocks {
			size := b.Size
			if b.State == alloc.Inactive {
				size = 0
			}
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// read goes through the calls. It returns the names of the failing step so far.
func (h *history) read(older []uint64) *keys {
	for _, size := range older {
		h.level += size
	}
	step, border, names := -1, h.border(-1), newKeys()
	for i := range h.cut {
		for i == border {
			step++
			h.first = append(h.first, len(h.allocs))
			names, border = newKeys(), h.border(step)
		}
		switch c := h.program.Call(i); c.Kind {
		case replay.CallAlloc:
			k := names.next(stackOf(h.trace, c.Event))
			h.at[c.Tensor] = int32(len(h.allocs))
			h.allocs = append(h.allocs, allocation{key: k, size: c.Size, call: int32(i), tensor: int32(c.Tensor), freed: -1, step: int32(step)})
			h.level += tight.Round(c.Size)
		case replay.CallFree, replay.CallFreeLater:
			if k := h.at[c.Tensor]; k >= 0 {
				h.allocs[k].freed = int32(i)
				h.level -= min(h.level, tight.Round(h.allocs[k].size))
			} else if c.Tensor < len(older) {
				h.level -= min(h.level, older[c.Tensor])
			}
		}
	}
	for len(h.first) < len(h.begin) { // the step begins with the request
		h.first = append(h.first, len(h.allocs))
		names = newKeys()
	}
	return names
}

// tight are the rules under which a request takes least.
var tight = alloc.RulesOf(alloc.Tightest(), pytorch.Default)

func stackOf(t *trace.Trace, event int) trace.StackID {
	if event < 0 || event >= t.Events.Len() {
		return trace.NoStack
	}
	return t.Events.Stack.At(event)
}

// callAt returns the first call at or after an event.
func (h *history) callAt(event int) int {
	return sort.Search(h.cut, func(i int) bool { return h.program.Call(i).Event >= event })
}

// failing returns the step that failed.
func (h *history) failing() int { return len(h.begin) - 1 }

// end returns the call after the last of a step.
func (h *history) end(step int) int {
	if step+1 < len(h.begin) {
		return h.begin[step+1]
	}
	return h.cut
}

// find returns the allocation of a step with a key.
func (h *history) find(step int, k key) (int, bool) {
	if step < 0 || step >= len(h.begin) {
		return 0, false
	}
	if h.index[step] == nil {
		m := make(map[key]int, h.first[step+1]-h.first[step])
		for i := h.first[step]; i < h.first[step+1]; i++ {
			m[h.allocs[i].key] = i
		}
		h.index[step] = m
	}
	i, ok := h.index[step][k]
	return i, ok
}

// twin returns the allocation of another step with the same key. Steps are mostly
// alike, so it is tried at the same place first.
func (h *history) twin(position, step int) (int, bool) {
	a := &h.allocs[position]
	if a.step >= 0 {
		if i := h.first[step] + position - h.first[a.step]; i < h.first[step+1] && h.allocs[i].key == a.key {
			return i, true
		}
	}
	return h.find(step, a.key)
}

// stepOf returns the step that a call belongs to, -1 before the first.
func (h *history) stepOf(call int) int {
	return sort.Search(len(h.begin), func(i int) bool { return h.begin[i] > call }) - 1
}

// forever is the age of what nobody frees.
const forever = -1

// age returns after how many steps an allocation is freed, 0 in its own; forever
// if neither it nor its twin of an earlier step is. A twin that was freed says
// nothing if a later one has been there for longer.
func (h *history) age(position int) int {
	a := &h.allocs[position]
	if a.freed >= 0 {
		return h.stepOf(int(a.freed)) - int(a.step)
	}
	const back = 4 // steps; one is enough but for what the first ones do
	oldest := h.failing() - int(a.step)
	for step := int(a.step) - 1; step >= 0 && step >= int(a.step)-back; step-- {
		i, ok := h.twin(position, step)
		if !ok {
			continue
		}
		if f := h.allocs[i].freed; f >= 0 {
			if age := h.stepOf(int(f)) - step; age >= oldest {
				return age
			}
			return forever
		}
		oldest = max(oldest, h.failing()-step)
	}
	return forever
}

// once reports whether an allocation that nobody frees is made in its step only:
// state, or a workspace. What the first step made and the failing one makes again
// is not.
func (h *history) once(position int) bool {
	a := &h.allocs[position]
	if a.step == 0 {
		i, ok := h.twin(position, h.failing())
		return !ok || h.allocs[i].freed >= 0 || h.allocs[i].size != a.size
	}
	for s := 1; s < h.failing(); s++ {
		if s == int(a.step) {
			continue
		}
		if i, ok := h.twin(position, s); ok && h.allocs[i].freed < 0 {
			return false
		}
	}
	return h.failing() > 2
}
