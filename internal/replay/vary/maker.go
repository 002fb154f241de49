package vary

import "github.com/ashlar-mem/ashlar/internal/replay"

// maker makes the calls of a variation, part by part.
type maker struct {
	*Variation
	add func(replay.Call)

	state []state   // of tensors
	slots [][]int32 // live tensors of each slot, oldest first
	owed  []int     // frees of each slot that came before there was anything in it
	late  []int32   // to be freed at the end of the part

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
		Variation: v, add: add, state: make([]state, len(pl.tensors)), slots: make([][]int32, pl.slots), owed: make([]int, pl.slots),
		waits: map[int]wait{}, early: map[int]bool{},
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

// calls makes the calls from one to another.
func (m *maker) calls(from, to int) {
	for i := from; i < to; i++ {
		c := m.plan.program.Call(i)
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

// leaveOut makes only those calls without which older tensors would stay.
func (m *maker) leaveOut(from, to int) {
	for i := from; i < to; i++ {
		switch c := m.plan.program.Call(i); c.Kind {
		case replay.CallFree, replay.CallFreeLater:
			if t := m.plan.tensors[c.Tensor]; t.born < t.dead && !t.heir {
				m.free(c)
			}
		case replay.CallComplete:
			m.complete(c)
		}
	}
}

func (m *maker) alloc(c replay.Call) {
	t := c.Tensor
	if m.size != nil && m.plan.scales(t) {
		c.Size = m.size(c.Size)
	}
	slot := m.plan.tensors[t].slot
	switch {
	case slot >= 0 && m.owed[slot] > 0:
		m.owed[slot]--
		m.late = append(m.late, int32(t))
	case m.state[t] == owed:
		m.late = append(m.late, int32(t))
	default:
		m.begin(t)
	}
	m.add(c)
}

func (m *maker) free(c replay.Call) {
	t, slot := c.Tensor, m.plan.tensors[c.Tensor].slot
	switch {
	case slot >= 0 && len(m.slots[slot]) > 0:
		c.Tensor = int(m.slots[slot][0])
		m.slots[slot] = m.slots[slot][1:]
	case slot >= 0:
		if m.comes(t) {
			m.owed[slot]++
		}
		return
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

// comes reports whether a tensor is allocated in the variation.
func (m *maker) comes(t int) bool {
	b := m.plan.tensors[t].born
	return b < 0 || int(b) >= len(m.out) || !m.out[b]
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
