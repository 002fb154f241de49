package eager

import (
	"github.com/ashlar-mem/ashlar/internal/invariants"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// arena hands out the small structs that a run makes by the hundred thousand.
// Those that are given up are used again: a run then works on little memory and
// leaves nothing to the garbage collector.
//
// So nobody may read a tensor after its last name was dropped. Builds with the
// tag invariants reuse none but spoil them, so that such a read panics.
type arena struct {
	tensors  slab[Tensor]
	storages slab[storage]
	nodes    slab[Node]
	edges    []edge // not yet used
	ops      [opSlots]namedOp
}

// slab hands out values of one type, in pieces of which each is some.
type slab[T any] struct {
	free  []*T
	fresh []T
}

// pieceLength is how many values are allocated at once.
const pieceLength = 256

// take returns a value with whatever was left in it.
func (s *slab[T]) take() *T {
	if n := len(s.free); n > 0 {
		x := s.free[n-1]
		s.free = s.free[:n-1]
		return x
	}
	if len(s.fresh) == 0 {
		s.fresh = make([]T, pieceLength)
	}
	x := &s.fresh[0]
	s.fresh = s.fresh[1:]
	return x
}

func (s *slab[T]) give(x *T) { s.free = append(s.free, x) }

// edgesFor returns edges for the inputs of a node.
func (a *arena) edgesFor(n int) []edge {
	if len(a.edges) < n {
		a.edges = make([]edge, max(n, pieceLength))
	}
	out := a.edges[:n:n]
	a.edges = a.edges[n:]
	return out
}

// giveTensor takes back a tensor that nobody owns. While a function is run
// again, its scope remembers all tensors, so none is used twice.
func (m *Machine) giveTensor(t *Tensor) {
	switch {
	case invariants.Enabled:
		*t = Tensor{dims: -1, dtype: noDType}
	case m.scope == nil:
		m.arena.tensors.give(t)
	}
}

// giveNode takes back a node that nothing leads to. Leaves have theirs for good.
func (m *Machine) giveNode(n *Node) {
	if n.leaf != nil {
		return
	}
	n.apply, n.hook, n.before = nil, nil, nil
	if !invariants.Enabled {
		m.arena.nodes.give(n)
	}
}

// opSlots is how many names of ops are kept at hand: more than ops have.
const opSlots = 256

// namedOp is the ledger's name for an op.
type namedOp struct {
	op   string
	name ledger.Name
}

// nameOf is the ledger's name for an op. Ops are few, and most are asked for
// again and again.
func (m *Machine) nameOf(op string) ledger.Name {
	if op == "" {
		return m.Ledger.Name(op)
	}
	slot := &m.arena.ops[(len(op)+5*int(op[0])+37*int(op[len(op)-1])+17*int(op[len(op)/2]))%opSlots]
	if slot.op != op {
		*slot = namedOp{op, m.Ledger.Name(op)}
	}
	return slot.name
}
