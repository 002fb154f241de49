package alloc

import "math/bits"

// hashOrder is a set of pool ids that is walked in the order of PyTorch's hash
// table (spec 8.6): the order decides which pool is released first and which
// use_on_oom pool serves a request. It is a Robin Hood table: slots are found
// by Fibonacci hashing, an entry far from home displaces one that is nearer to
// its own, and deleting shifts entries back. It never shrinks.
type hashOrder struct {
	homes int // number of home slots: 0 or a power of two
	slots []hashSlot
	n     int
	loose bool // probes have no limit, see grow
}

type hashSlot struct {
	id   PoolID
	dist int // distance from home + 1; 0 marks an empty slot
}

func (p PoolID) hash() uint64 {
	if p.First != 0 {
		return p.First
	}
	return p.Second
}

func (h *hashOrder) home(id PoolID) int {
	return int(id.hash() * 11400714819323198485 >> (64 - (bits.Len(uint(h.homes)) - 1)))
}

// maxProbe is the probe length at which the table grows.
func (h *hashOrder) maxProbe() int {
	if h.loose {
		return len(h.slots)
	}
	return max(4, bits.Len(uint(h.homes))-1)
}

func (h *hashOrder) find(id PoolID) int {
	if h.homes == 0 {
		return -1
	}
	for i, d := h.home(id), 1; i < len(h.slots) && h.slots[i].dist >= d; i, d = i+1, d+1 {
		if h.slots[i].id == id {
			return i
		}
	}
	return -1
}

func (h *hashOrder) has(id PoolID) bool { return h.find(id) >= 0 }

func (h *hashOrder) insert(id PoolID) {
	if h.has(id) {
		return
	}
	if 2*(h.n+1) > h.homes || h.loose && h.homes+h.n+2 > len(h.slots) {
		h.grow()
	}
	for !h.place(id) {
		h.grow()
	}
	h.n++
}

// place puts an id into the table, or reports false and leaves the table as it
// was if some entry would end up too far from home.
func (h *hashOrder) place(id PoolID) bool {
	var undo []hashSlot
	if !h.loose {
		undo = append(undo, h.slots...)
	}
	in := hashSlot{id: id, dist: 1}
	for i := h.home(id); ; i++ {
		if in.dist > h.maxProbe() {
			h.slots = undo
			return false
		}
		s := &h.slots[i]
		if s.dist == 0 {
			*s = in
			return true
		}
		if s.dist < in.dist {
			*s, in = in, *s
		}
		in.dist++
	}
}

// sparse is how many home slots for an entry there may be. Ids that differ only in
// what the hash does not look at never come apart, and PyTorch's table would grow
// until memory is used up; PyTorch itself makes no such ids.
const sparse = 1 << 10

func (h *hashOrder) grow() {
	old := h.slots
	if !h.loose || 2*(h.n+1) > h.homes {
		h.homes = max(4, 2*h.homes)
	}
	for {
		h.loose = h.loose || h.homes > sparse*(h.n+1)
		behind := h.maxProbe() + 1
		if h.loose {
			behind = 2 * (h.n + 8)
		}
		h.slots = make([]hashSlot, h.homes+behind)
		fits := true
		for _, s := range old {
			fits = fits && (s.dist == 0 || h.place(s.id))
		}
		if fits {
			return
		}
		h.homes *= 2
	}
}

func (h *hashOrder) remove(id PoolID) {
	if i := h.find(id); i >= 0 {
		h.removeAt(i)
	}
}

func (h *hashOrder) removeAt(i int) {
	for ; i+1 < len(h.slots) && h.slots[i+1].dist > 1; i++ {
		h.slots[i] = hashSlot{h.slots[i+1].id, h.slots[i+1].dist - 1}
	}
	h.slots[i] = hashSlot{}
	h.n--
}

// each calls f for the ids in table order until it reports false.
func (h *hashOrder) each(f func(PoolID) bool) {
	for _, s := range h.slots {
		if s.dist != 0 && !f(s.id) {
			return
		}
	}
}

// sweep calls f for the ids in table order and removes those it reports true
// for; the walk goes on at the same slot.
func (h *hashOrder) sweep(f func(PoolID) (remove bool, err error)) error {
	for i := 0; i < len(h.slots); {
		if h.slots[i].dist == 0 {
			i++
			continue
		}
		remove, err := f(h.slots[i].id)
		if err != nil {
			return err
		}
		if remove {
			h.removeAt(i)
		} else {
			i++
		}
	}
	return nil
}
