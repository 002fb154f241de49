package eager

import (
	"container/heap"
	"math/rand"
	"testing"
)

// A weight that is used before, in and after a reentrant checkpoint waits in the
// outer pass while the pass within brings it a gradient too.
func TestPassWithinPass(t *testing.T) {
	m := New(H200)
	w := m.Parameter(Float32, true, 64)
	x := m.Parameter(Float32, true, 64)
	before := m.Mul(x, w)
	within := m.CheckpointReentrant(func(args []*Tensor) *Tensor { return m.Mul(args[0], w) }, before)
	after := m.Mul(within, w)
	loss := m.Sum(after, 0, false)
	m.Backward(loss)
	Drop(loss, after, within, before)
	if w.Grad() == nil || x.Grad() == nil {
		t.Fatal("a gradient is missing")
	}
	if got := live(m); got != 4*64*4 {
		t.Errorf("%d bytes are left, want those of two weights and two gradients", got)
	}
}

// heapOf is a queue as container/heap sees it.
type heapOf struct{ queue }

func (h heapOf) Len() int           { return len(h.queue) }
func (h heapOf) Less(i, j int) bool { return h.before(i, j) }
func (h heapOf) Swap(i, j int)      { h.queue[i], h.queue[j] = h.queue[j], h.queue[i] }
func (h *heapOf) Push(x any)        { h.queue = append(h.queue, x.(*Node)) }

func (h *heapOf) Pop() any {
	n := len(h.queue) - 1
	x := h.queue[n]
	h.queue = h.queue[:n]
	return x
}

// Nodes of the same number come in the order of container/heap, which the
// recordings were compared with.
func TestQueueOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var q queue
	var h heapOf
	for i := range 20_000 {
		if rng.Intn(3) > 0 {
			n := &Node{sequence: int64(rng.Intn(8))}
			q.push(n)
			heap.Push(&h, n)
		} else if len(q) > 0 {
			if a, b := q.pop(), heap.Pop(&h).(*Node); a != b {
				t.Fatalf("operation %d: %d, want %d", i, a.sequence, b.sequence)
			}
		}
	}
}
