package alloc

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// setModel is the free set as a sorted slice: obviously right, and slow.
type setModel []modelEntry

type modelEntry struct {
	size, addr uint64
	id         blockID
}

func (m setModel) find(size, addr uint64) (int, bool) {
	return slices.BinarySearchFunc(m, modelEntry{size: size, addr: addr}, func(x, y modelEntry) int {
		return cmp.Or(cmp.Compare(x.size, y.size), cmp.Compare(x.addr, y.addr))
	})
}

func (m setModel) at(i int) blockID {
	if i < 0 || i >= len(m) {
		return noBlock
	}
	return m[i].id
}

// TestFreeSetAgainstModel runs random operations on both, with sizes that
// crowd single classes, spread over all of them, and lie beside their borders.
func TestFreeSetAgainstModel(t *testing.T) {
	sizes := map[string]func(*rand.Rand) uint64{
		"one exact class": func(*rand.Rand) uint64 { return 4096 },
		"few classes":     func(r *rand.Rand) uint64 { return 512 * (1 + r.Uint64N(20)) },
		"one wide class":  func(r *rand.Rand) uint64 { return 1<<36 + 512*r.Uint64N(1<<19) },
		"all":             func(r *rand.Rand) uint64 { return max(512, r.Uint64N(1<<(10+r.Uint64N(36)))&^511) },
		"borders": func(r *rand.Rand) uint64 {
			return min(max(512, uint64(1)<<(9+r.Uint64N(37))+512*r.Uint64N(5)-1024), maxBlockSize-512)
		},
	}
	for name, size := range sizes {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			s := freeSet{forest: &forest{}}
			var m setModel
			for n := range 30_000 {
				sz, addr := size(r), r.Uint64N(1<<22)<<9
				if n%10_000 < 6_000 || len(m) == 0 {
					if i, found := m.find(sz, addr); !found {
						id := blockID(n + 1)
						m = slices.Insert(m, i, modelEntry{sz, addr, id})
						s.insert(sz, addr, id)
					}
				} else {
					i := r.IntN(len(m))
					s.remove(m[i].size, m[i].addr)
					m = slices.Delete(m, i, i+1)
				}
				i, _ := m.find(sz, 0)
				if got := s.ceil(sz); got != m.at(i) {
					t.Fatalf("operation %d: ceil(%d) = %d, want %d", n, sz, got, m.at(i))
				}
				i, found := m.find(sz, addr)
				if got, want := s.before(sz, addr), m.at(i-1); got != want {
					t.Fatalf("operation %d: before(%d, %#x) = %d, want %d", n, sz, addr, got, want)
				}
				if found {
					i++
				}
				if got, want := s.after(sz, addr), m.at(i); got != want {
					t.Fatalf("operation %d: after(%d, %#x) = %d, want %d", n, sz, addr, got, want)
				}
			}
			ids := s.appendAll(nil)
			for i, e := range m {
				if ids[i] != e.id {
					t.Fatalf("block %d in order is %d, want %d", i, ids[i], e.id)
				}
			}
			if len(ids) != len(m) {
				t.Fatalf("%d blocks, want %d", len(ids), len(m))
			}
			if got := s.before(1<<60, 0); got != m.at(len(m)-1) {
				t.Errorf("the last block is %d, want %d", got, m.at(len(m)-1))
			}
			if got := s.ceil(1 << 59); got != noBlock {
				t.Errorf("a block %d of 2^59 bytes", got)
			}
			for _, e := range m {
				s.remove(e.size, e.addr)
			}
			if s.ceil(1) != noBlock || s.summary != [len(s.summary)]uint64{} {
				t.Error("not empty at the end")
			}
		})
	}
}

// TestLocate: classes and keys order sizes as the sizes themselves.
func TestLocate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		x := max(512, r.Uint64N(1<<(10+r.Uint64N(36)))&^511)
		y := max(512, r.Uint64N(1<<(10+r.Uint64N(36)))&^511)
		if r.IntN(2) == 0 {
			y = min(x+512*r.Uint64N(100), maxBlockSize-512)
		}
		cx, hx := locate(x)
		cy, hy := locate(y)
		if want := cmp.Compare(x, y); cmp.Or(cmp.Compare(cx, cy), cmp.Compare(hx, hy)) != want {
			t.Fatalf("%d and %d: classes %d, %d, keys %#x, %#x", x, y, cx, cy, hx, hy)
		}
		if cx >= classCount {
			t.Fatalf("%d: class %d of %d", x, cx, classCount)
		}
	}
}

func TestAddrTableAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	table := newAddrTable()
	blocks := make([]block, 20_001)
	var live []blockID
	spare := make([]blockID, 0, len(blocks))
	for id := len(blocks) - 1; id > 0; id-- {
		spare = append(spare, blockID(id))
	}
	m := map[uint64]blockID{}
	for n := range 300_000 {
		grow := n/50_000%2 == 0
		if r.IntN(10) < 7 == grow && len(spare) > 0 {
			addr := (1 + r.Uint64N(1<<16)) << 9 // dense: many collisions
			if m[addr] != noBlock {
				continue
			}
			id := spare[len(spare)-1]
			spare = spare[:len(spare)-1]
			blocks[id].addr = addr
			table.insert(addr, id)
			m[addr] = id
			live = append(live, id)
		} else if len(live) > 0 {
			i := r.IntN(len(live))
			id := live[i]
			live = slices.Delete(live, i, i+1)
			if got := table.take(blocks[id].addr, blocks); got != id {
				t.Fatalf("operation %d: took %d, want %d", n, got, id)
			}
			delete(m, blocks[id].addr)
			blocks[id].addr = 0
			spare = append(spare, id)
		}
		addr := (1 + r.Uint64N(1<<16)) << 9
		if got := table.lookup(addr, blocks); got != m[addr] {
			t.Fatalf("operation %d: %#x is %d, want %d", n, addr, got, m[addr])
		}
	}
	if table.n != len(m) {
		t.Errorf("%d entries, want %d", table.n, len(m))
	}
}

// TestHashOrder checks the set semantics; that the order is PyTorch's is
// checked by the recordings with several pools.
func TestHashOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var h hashOrder
	m := map[PoolID]bool{}
	for n := range 20_000 {
		id := PoolID{0, 1 + r.Uint64N(60)}
		if r.IntN(3) == 0 {
			id = PoolID{1 + r.Uint64N(60), 0} // same hash as (0, n)
		}
		if r.IntN(2) == 0 {
			h.insert(id)
			m[id] = true
		} else {
			h.remove(id)
			delete(m, id)
		}
		seen := map[PoolID]bool{}
		h.each(func(p PoolID) bool { seen[p] = true; return true })
		if len(seen) != len(m) || h.n != len(m) || h.has(id) != m[id] {
			t.Fatalf("operation %d: %d ids, counted %d, want %d", n, len(seen), h.n, len(m))
		}
	}
	// A sweep that removes every second id sees each one once.
	seen := map[PoolID]int{}
	_ = h.sweep(func(p PoolID) (bool, error) { seen[p]++; return p.Second%2 == 0, nil })
	for p := range m {
		if seen[p] != 1 || h.has(p) != (p.Second%2 != 0) {
			t.Errorf("pool %v seen %d times, kept %v", p, seen[p], h.has(p))
		}
	}
}
