package diff

import (
	"math/bits"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// call is what a program asked of the allocator: its kind in the lowest bits
// and the size above them.
type call uint64

const (
	callAlloc call = iota
	callFree
	callOOM
	callKinds = 3
)

func (c call) kind() call   { return c & callKinds }
func (c call) size() uint64 { return uint64(c >> 2) }

func (c call) String() string { return [...]string{"alloc", "free", "oom", ""}[c.kind()] }

// callsLen is the number of calls that are kept in one piece.
const callsLen = 4096

// calls is a piece of a sequence. Ranks that do the same share their pieces.
type calls struct {
	what  []call
	stack []trace.StackID
}

func (c *calls) equal(o *calls) bool {
	return slices.Equal(c.what, o.what) && slices.Equal(c.stack, o.stack)
}

// sequence is all calls of a trace, in order.
type sequence struct {
	pieces []*calls
	length int
	isCall []uint64 // a bit for each event
}

// sequence collects the calls of a trace. Its stacks are brought into the
// table.
func (x *Table) sequence(t *trace.Trace) *sequence {
	m := x.importer(t)
	s := &sequence{isCall: make([]uint64, (t.Events.Len()+63)/64)}
	piece := &calls{}
	for i := range t.Events.Len() {
		var kind call
		switch t.Events.Action.At(i) {
		case alloc.ActionAlloc:
			kind = callAlloc
		case alloc.ActionFreeRequested:
			kind = callFree
		case alloc.ActionOOM:
			kind = callOOM
		default:
			continue
		}
		s.isCall[i/64] |= 1 << (i % 64)
		piece.what = append(piece.what, call(t.Events.Size.At(i)<<2)|kind)
		piece.stack = append(piece.stack, m.stack(t.Events.Stack.At(i)))
		if len(piece.what) == callsLen {
			s.add(x, piece)
			piece = &calls{}
		}
	}
	if len(piece.what) > 0 {
		s.add(x, piece)
	}
	return s
}

// add appends a piece, or the same one of a rank that was there before.
func (s *sequence) add(x *Table, piece *calls) {
	at := len(s.pieces)
	s.length += len(piece.what)
	for _, other := range x.variants[at] {
		if other.equal(piece) {
			s.pieces = append(s.pieces, other)
			return
		}
	}
	piece.what, piece.stack = slices.Clip(piece.what), slices.Clip(piece.stack)
	x.variants[at] = append(x.variants[at], piece)
	s.pieces = append(s.pieces, piece)
}

func (s *sequence) callAt(i int) call { return s.pieces[i/callsLen].what[i%callsLen] }

func (s *sequence) stack(i int) trace.StackID { return s.pieces[i/callsLen].stack[i%callsLen] }

// event returns the number of the event that is call i.
func (s *sequence) event(i int) int {
	for w, word := range s.isCall {
		n := bits.OnesCount64(word)
		if i >= n {
			i -= n
			continue
		}
		for ; i > 0; i-- {
			word &= word - 1
		}
		return w*64 + bits.TrailingZeros64(word)
	}
	return -1
}
