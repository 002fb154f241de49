package vary

import "github.com/ashlar-mem/ashlar/internal/replay"

// maker makes the calls of a variation, part by part.
type maker struct {
	*Variation
	add func(replay.Call)

	state []state   // of tensors
	slots [][]int32 // live tensors of each slot, oldest first
	late  []int32   // to be freed at the end of the part
	count int       // calls made

	waits    map[int]wait // pending frees by the tensor that the recording freed
	early    map[int]bool // frees that were completed before they were made
	idle     []uint64     // made-up streams that nothing waits for
	nextWait uint64
}

type state uint8

const (
	absent state = iota
	live
	owed // its free came before it was allocated
)

// wait is a free that waits for a made-up stream.
type wait struct {
	tensor int
	stream uint64
}

func newMaker(v *Variation, add func(replay.Call)) *maker {
	pl := v.plan
	m := &maker{
		Variation: v, state: make([]state, len(pl.tensors)), slots: make([][]int32, pl.slots),
		waits: map[int]wait{}, early: map[int]bool{},
	}
	m.add = func(c replay.Call) {
		m.count++
		add(c)
	}
	for t := range pl.program.Initial() {
		m.begin(t)
	}
	pl.each(func(_ int32, c *replay.Call) {
		if c.Kind == replay.CallComplete {
			m.nextWait = max(m.nextWait, c.Stream+1)
		}
	})
	return m
}

// begin notes that a tensor is live.
func (m *maker) begin(t int) {
	m.state[t] = live
	if s := m.plan.tensors[t].slot; s >= 0 {
		m.slots[s] = append(m.slots[s], int32(t))
	}
}

// calls makes the calls from one to another, except those that are skipped; skip
// may be nil.
func (m *maker) calls(from, to int, skip func(*replay.Call) bool) {
	for i := from; i < to; i++ {
		c := m.plan.program.Call(i)
		if skip != nil && skip(&c) {
			continue
		}
		switch c.Kind {
		case replay.CallAlloc:
			m.alloc(c)
		case replay.CallFree, replay.CallFreeLater:
			m.free(c)
		case replay.CallComplete:
			m.complete(c)
		default:
			m.add(c)
		}
	}
	for _, t := range m.late {
		m.state[t] = absent
		m.add(replay.Call{Kind: replay.CallFree, Tensor: int(t), Event: m.plan.program.Call(to - 1).Event})
	}
	m.late = m.late[:0]
}

// step makes the calls of a step. If another step comes first, that is where the
// first one's lasting calls are made.
func (m *maker) step(at int) {
	i := m.order[at]
	from, to := m.plan.bounds[i], m.plan.bounds[i+1]
	lasting := m.plan.lasting
	switch {
	case m.out[i]:
		m.calls(from, to, func(c *replay.Call) bool { return !m.needed(c) && !lasting(c) })
	case i == 0 && at > 0:
		m.calls(from, to, lasting)
	default:
		m.calls(from, to, nil)
	}
	if at == 0 && i > 0 {
		m.calls(m.plan.bounds[0], m.plan.bounds[1], func(c *replay.Call) bool { return !lasting(c) })
	}
}

// needed reports whether older tensors would stay without a call of a step that
// is left out.
func (m *maker) needed(c *replay.Call) bool {
	switch c.Kind {
	case replay.CallFree, replay.CallFreeLater:
		t := &m.plan.tensors[c.Tensor]
		return t.born < t.dead && !t.heir
	}
	return c.Kind == replay.CallComplete
}

func (m *maker) alloc(c replay.Call) {
	t := c.Tensor
	if m.size != nil && m.plan.scales(t) {
		c.Size = m.size(c.Size)
	}
	if m.state[t] == owed {
		m.late = append(m.late, int32(t))
		m.add(c)
		return
	}
	x := &m.plan.tensors[t]
	if x.slot >= 0 && !x.heirOf && len(m.slots[x.slot]) > 0 {
		// Its step came first and found the slot empty. Now it is not.
		m.add(replay.Call{Kind: replay.CallFree, Tensor: m.leave(x.slot), Event: c.Event})
	}
	m.begin(t)
	m.add(c)
}

// leave takes the oldest tensor out of a slot.
func (m *maker) leave(slot int32) int {
	t := m.slots[slot][0]
	m.slots[slot] = m.slots[slot][1:]
	m.state[t] = absent
	return int(t)
}

func (m *maker) free(c replay.Call) {
	t, x := c.Tensor, &m.plan.tensors[c.Tensor]
	switch {
	case x.slot >= 0:
		in := m.slots[x.slot]
		if len(in) == 0 || m.plan.tensors[in[0]].born == x.dead {
			return // there is nothing of another step
		}
		c.Tensor = m.leave(x.slot)
	case m.state[t] != live:
		m.state[t] = owed
		return
	}
	m.state[c.Tensor] = absent
	if c.Kind == replay.CallFreeLater {
		if m.early[t] {
			c.Kind = replay.CallFree
		} else {
			c.Stream = m.wait(t, c.Tensor)
		}
	}
	m.add(c)
}

// wait returns a made-up stream for a free that is recorded for t.
func (m *maker) wait(t, tensor int) uint64 {
	w := wait{tensor: tensor, stream: m.nextWait}
	if n := len(m.idle); n > 0 {
		w.stream, m.idle = m.idle[n-1], m.idle[:n-1]
	} else {
		m.nextWait++
	}
	m.waits[t] = w
	return w.stream
}

// complete ends a pending free. One that was pending before the first call has
// the stream of the recording.
func (m *maker) complete(c replay.Call) {
	if w, ok := m.waits[c.Tensor]; ok {
		delete(m.waits, c.Tensor)
		m.idle = append(m.idle, w.stream)
		c.Tensor, c.Stream = w.tensor, w.stream
		m.add(c)
		return
	}
	if c.Tensor < m.plan.program.Initial() && m.plan.tensors[c.Tensor].dead == never {
		m.add(c)
		return
	}
	m.early[c.Tensor] = true
}
