package alloc

// addrTable finds the allocated block that starts at an address. It is an
// open-addressing hash table of 8-byte slots: the upper half of a slot is the
// upper half of the address's hash, the lower half is the block. The upper
// half also gives the slot's home, so entries can be moved without looking at
// the blocks. Deleting shifts the following entries back: there are no
// tombstones and lookups stay short.
type addrTable struct {
	slots []uint64
	shift uint // home slot = tag >> shift
	n     int
}

const minTable = 1024

func newAddrTable() addrTable {
	return addrTable{slots: make([]uint64, minTable), shift: 32 - 10}
}

// tag is the upper half of the hash of an address. Block addresses differ in
// the bits from 9 on.
func tag(addr uint64) uint32 { return uint32((addr >> 9) * 0x9E3779B97F4A7C15 >> 32) }

func (t *addrTable) insert(addr uint64, id blockID) {
	if 4*(t.n+1) > len(t.slots) {
		t.grow()
	}
	t.n++
	t.place(uint64(tag(addr))<<32 | uint64(id))
}

func (t *addrTable) place(slot uint64) {
	mask := len(t.slots) - 1
	i := int(uint32(slot>>32)>>t.shift) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
}

func (t *addrTable) grow() {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	t.shift--
	for _, s := range old {
		if s != 0 {
			t.place(s)
		}
	}
}

// find returns the slot of the block that starts at addr, or -1.
func (t *addrTable) find(addr uint64, blocks []block) int {
	mask := len(t.slots) - 1
	h := tag(addr)
	for i := int(h>>t.shift) & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s == 0 {
			return -1
		}
		if uint32(s>>32) == h && blocks[uint32(s)].addr == addr {
			return i
		}
	}
}

// lookup returns the allocated block that starts at addr, or noBlock.
func (t *addrTable) lookup(addr uint64, blocks []block) blockID {
	if i := t.find(addr, blocks); i >= 0 {
		return blockID(uint32(t.slots[i]))
	}
	return noBlock
}

// take removes the block that starts at addr and returns it, or noBlock.
func (t *addrTable) take(addr uint64, blocks []block) blockID {
	i := t.find(addr, blocks)
	if i < 0 {
		return noBlock
	}
	id := blockID(uint32(t.slots[i]))
	t.removeSlot(i)
	return id
}

// drop removes a block whose address is known.
func (t *addrTable) drop(addr uint64, id blockID) {
	mask := len(t.slots) - 1
	h := tag(addr)
	want := uint64(h)<<32 | uint64(id)
	i := int(h>>t.shift) & mask
	for t.slots[i] != want {
		i = (i + 1) & mask
	}
	t.removeSlot(i)
}

func (t *addrTable) removeSlot(i int) {
	t.n--
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; ; j = (j + 1) & mask {
		s := t.slots[j]
		if s == 0 {
			break
		}
		// s may move to i only if its home is not in (i, j].
		if home := int(uint32(s>>32)>>t.shift) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i] = s
			i = j
		}
	}
	t.slots[i] = 0
}
