package alloc

import (
	"github.com/ashlar-mem/ashlar/internal/ticks"
)

// history is the trace kept in memory: a ring of the newest events.
type history struct {
	on      bool
	skip    [numActions]bool
	max     int
	next    int // where the next event goes
	wrapped bool
	records [][]record // chunks of chunkLen
	metas   []string   // texts named by records; 0 is the empty one
	pools   []PoolID
	clock   ticks.Clock
}

// record is an Event in its stored form.
type record struct {
	ticks      int64
	addr, size uint64
	block      uint64
	stream     uint64
	meta, pool uint32
	action     Action
}

const chunkLen = 4096

// HistoryOptions say what RecordHistory keeps.
type HistoryOptions struct {
	MaxEntries int      // newest events to keep; 0 keeps all
	Skip       []Action // not kept
}

// RecordHistory starts to keep the trace, from an empty one.
func (a *Allocator) RecordHistory(o HistoryOptions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history = history{on: true, max: o.MaxEntries, metas: []string{""}, pools: []PoolID{{}}, clock: ticks.NewClock()}
	for _, s := range o.Skip {
		if s < numActions {
			a.history.skip[s] = true
		}
	}
}

// StopHistory stops keeping the trace and drops it.
func (a *Allocator) StopHistory() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history = history{}
}

// SetMetadata sets a text that is attached to every following event.
func (a *Allocator) SetMetadata(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.meta = text
}

// History returns the kept events, oldest first.
func (a *Allocator) History() []Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.history.events()
}

// tracing reports whether anybody wants events.
func (a *Allocator) tracing() bool { return a.history.on || a.observer != nil }

// tick reads the clock for events, if they are kept.
func (a *Allocator) tick() int64 {
	if a.history.on {
		return ticks.Now()
	}
	return 0
}

// emit records one event that happens now and concerns no block.
func (a *Allocator) emit(action Action, addr, size uint64, sp *streamPool) {
	a.emitAt(a.tick(), action, addr, size, 0, sp)
}

// emitAt records one event; block is the size of the block it concerns.
func (a *Allocator) emitAt(tick int64, action Action, addr, size, block uint64, sp *streamPool) {
	if a.history.on && !a.history.skip[action] {
		r := a.history.slot()
		r.ticks = tick
		r.addr, r.size, r.block, r.stream = addr, size, block, sp.stream
		r.meta, r.pool = a.history.metaID(a.meta), a.history.poolID(sp.pool)
		r.action = action
	}
	if a.observer != nil {
		e := Event{Action: action, Addr: addr, Size: size, Block: block, Stream: sp.stream, Meta: a.meta}
		if p := sp.pool.private; p != nil {
			e.Pool = p.id
		}
		a.observer(e)
	}
}

// slot returns the record for the next event.
func (h *history) slot() *record {
	c := h.next / chunkLen
	if c == len(h.records) {
		h.records = append(h.records, make([]record, chunkLen))
	}
	r := &h.records[c][h.next%chunkLen]
	h.next++
	if h.next == h.max {
		h.next, h.wrapped = 0, true
	}
	return r
}

// metaID finds the number of a text; the newest is the usual one.
func (h *history) metaID(text string) uint32 {
	if last := len(h.metas) - 1; h.metas[last] == text {
		return uint32(last)
	}
	if text == "" {
		return 0
	}
	h.metas = append(h.metas, text)
	return uint32(len(h.metas) - 1)
}

func (h *history) poolID(p *pool) uint32 {
	if p.private == nil {
		return 0
	}
	for i := len(h.pools) - 1; i > 0; i-- {
		if h.pools[i] == p.private.id {
			return uint32(i)
		}
	}
	h.pools = append(h.pools, p.private.id)
	return uint32(len(h.pools) - 1)
}

func (h *history) events() []Event {
	if !h.on {
		return nil
	}
	n, first := h.next, 0
	if h.wrapped {
		n, first = h.max, h.next
	}
	at := h.clock.Reading()
	out := make([]Event, n)
	for i := range out {
		j := first + i
		if j >= n {
			j -= n
		}
		r := &h.records[j/chunkLen][j%chunkLen]
		out[i] = Event{
			Action: r.action, Addr: r.addr, Size: r.size, Block: r.block, Stream: r.stream,
			Pool: h.pools[r.pool], Time: at.UnixNano(r.ticks), Meta: h.metas[r.meta],
		}
	}
	return out
}
