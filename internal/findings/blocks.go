package findings

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/trace"
)

// block is the life of one block. Events are positions in the trace.
type block struct {
	size  uint64
	asked uint64 // what was requested
	born  int32  // its alloc; -1 if it is older than the trace
	freed int32  // its free_requested; never if it is there at the end
	gone  int32  // its free_completed, from which on it is not active any more
	stack trace.StackID
}

// never is later than every event.
const never = 1<<31 - 1

// alive tells whether the block is active after an event.
func (b *block) alive(event int32) bool { return b.born <= event && event < b.gone }

// lives are the blocks of a trace in the order of their allocation, those that
// are older than the trace first, and the active bytes they add up to.
type lives struct {
	blocks []block
	older  int      // how many of them are older than the trace
	before uint64   // active bytes before the first event
	live   []uint64 // active bytes after each event
}

// at returns the active bytes before an event.
func (l *lives) at(event int) uint64 {
	if event == 0 {
		return l.before
	}
	return l.live[event-1]
}

// newLives goes through the events once. sizes are those of the blocks; nil
// takes what was requested.
func newLives(t *trace.Trace, begin *start.State, sizes *trace.Column[uint64]) *lives {
	n := t.Events.Len()
	l := &lives{blocks: make([]block, 0, n/3+64), live: make([]uint64, n)}
	w := walk{lives: l, at: make(map[uint64]int32, 1024), sizes: sizes}
	w.begin(t, begin)
	live := uint64(0)
	for i := range l.blocks {
		live += l.blocks[i].size
	}
	for i := range n {
		switch t.Events.Action.At(i) {
		case alloc.ActionAlloc:
			size, addr := w.size(&t.Events, i), t.Events.Addr.At(i)
			if k, ok := w.at[addr]; ok { // the file lacks its free
				live -= l.blocks[k].size
				l.blocks[k].freed, l.blocks[k].gone = int32(i), int32(i)
			}
			w.at[addr] = int32(len(l.blocks))
			l.blocks = append(l.blocks, block{size: size, asked: t.Events.Size.At(i), born: int32(i), freed: never, gone: never, stack: t.Events.Stack.At(i)})
			live += size
		case alloc.ActionFreeRequested:
			if k, ok := w.at[t.Events.Addr.At(i)]; ok {
				b := &l.blocks[k]
				b.freed = int32(i)
				if b.born < 0 {
					live = w.correct(b, i, live)
				}
			}
		case alloc.ActionFreeCompleted:
			addr := t.Events.Addr.At(i)
			if k, ok := w.at[addr]; ok {
				b := &l.blocks[k]
				b.gone = int32(i)
				b.freed = min(b.freed, b.gone)
				if b.born < 0 {
					live = w.correct(b, i, live)
				}
				live -= b.size
				delete(w.at, addr)
			}
		}
		l.live[i] = live
	}
	l.before += w.older
	if w.older > 0 {
		w.raise()
	}
	return l
}

// walk is the state of newLives.
type walk struct {
	*lives
	at    map[uint64]int32 // address -> active block
	sizes *trace.Column[uint64]
	older uint64 // what the sizes of older blocks turned out to be larger by
	fixed []fix
}

// fix is an older block whose size became known when it was freed.
type fix struct {
	event int
	by    uint64
}

func (w *walk) size(events *trace.Events, i int) uint64 {
	if w.sizes != nil {
		return w.sizes.At(i)
	}
	return events.Size.At(i)
}

// begin takes the blocks that are older than the trace. Those that stay to the
// end are in the file with size and stack; of the others only the request is
// known here.
func (w *walk) begin(t *trace.Trace, begin *start.State) {
	for i := range begin.Segments {
		for _, b := range begin.Segments[i].Blocks {
			if b.State == alloc.Inactive {
				continue
			}
			size := b.RequestedSize
			if w.sizes != nil && b.Size > 0 {
				size = b.Size
			}
			w.at[b.Address] = int32(len(w.blocks))
			w.blocks = append(w.blocks, block{size: size, asked: b.RequestedSize, born: -1, freed: never, gone: never})
			w.before += size
		}
	}
	w.lives.older = len(w.blocks)
	if w.lives.older == 0 {
		return
	}
	for i := range t.Segments {
		for j := range t.Segments[i].Blocks {
			b := &t.Segments[i].Blocks[j]
			if k, ok := w.at[b.Address]; ok && b.State != alloc.Inactive.String() {
				w.blocks[k].stack = b.Stack
			}
		}
	}
}

// correct gives an older block the size that its free tells, and drops the
// stack that belongs to a later block at the same address.
func (w *walk) correct(b *block, event int, live uint64) uint64 {
	b.stack = trace.NoStack
	if w.sizes == nil {
		return live
	}
	if size := w.sizes.At(event); size > b.size {
		by := size - b.size
		b.size = size
		w.older += by
		w.fixed = append(w.fixed, fix{event, by})
		return live + by
	}
	return live
}

// raise adds what was learnt late to the totals before.
func (w *walk) raise() {
	k, add := 0, w.older
	for i := range w.live {
		for k < len(w.fixed) && w.fixed[k].event <= i {
			add -= w.fixed[k].by
			k++
		}
		if k == len(w.fixed) {
			return
		}
		w.live[i] += add
	}
}
