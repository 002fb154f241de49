package findings

import (
	"iter"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// block is the lifetime of one block. Events are positions in the trace.
type block struct {
	id    int32 // its number
	size  uint64
	asked uint64 // what was requested
	born  int32  // its alloc; -1 if it is older than the trace
	freed int32  // its free_requested; never if it is there at the end
	gone  int32  // its free_completed, from which on it is not active any more
	stack trace.StackID
}

// never is later than every event.
const never = timeline.Never

// alive reports whether the block is active after an event.
func (b *block) alive(event int32) bool { return b.born <= event && event < b.gone }

// blockIndex has the blocks of a trace in the order of their allocation, those
// older than the trace first, and the sums of active bytes. It leaves out blocks
// of which the trace has only the free.
type blockIndex struct {
	index  *timeline.Lifetimes
	older  int      // how many of them are older than the trace
	before uint64   // active bytes before the first event
	live   []uint64 // active bytes after each event
}

func newBlockIndex(index *timeline.Lifetimes) *blockIndex {
	l := &blockIndex{index: index, older: index.Older - index.Found, live: make([]uint64, index.Events())}
	for i := range l.older {
		l.before += index.Size[i]
	}
	live, events := l.before, &index.Trace.Events
	for i := range l.live {
		id := index.BlockOf(i)
		if l.known(id) {
			switch events.Action.At(i) {
			case alloc.ActionAlloc:
				if old, ok := index.Replaced(i); ok && l.known(old) {
					live -= index.Size[old]
				}
				live += index.Size[id]
			case alloc.ActionFreeCompleted:
				live -= index.Size[id]
			}
		}
		l.live[i] = live
	}
	return l
}

// known reports whether a block of the index is one of these.
func (l *blockIndex) known(id int) bool { return id >= 0 && (id < l.older || id >= l.index.Older) }

// len returns the number of blocks.
func (l *blockIndex) len() int { return l.index.Len() - l.index.Found }

// block returns block i.
func (l *blockIndex) block(i int) block {
	id, x := int32(i), l.index
	if i >= l.older {
		i += x.Found
	}
	return block{
		id: id, size: x.Size[i], asked: x.Requested(i), born: x.Born[i], freed: x.Freed[i], gone: x.Gone[i], stack: x.Stack(i),
	}
}

// stack returns the stack of allocation i of the trace.
func (l *blockIndex) stack(i int) trace.StackID { return l.index.Stack(l.index.Older + i) }

// all yields every block; allocated those that the trace allocates. The block is
// the same variable each time: copy it to keep it.
func (l *blockIndex) all() iter.Seq[*block] { return l.from(0) }

func (l *blockIndex) allocated() iter.Seq[*block] { return l.from(l.older) }

func (l *blockIndex) from(first int) iter.Seq[*block] {
	return func(yield func(*block) bool) {
		for i := first; i < l.len(); i++ {
			b := l.block(i)
			if !yield(&b) {
				return
			}
		}
	}
}

// levelAt returns the active bytes before an event.
func (l *blockIndex) levelAt(event int) uint64 {
	if event == 0 {
		return l.before
	}
	return l.live[event-1]
}
