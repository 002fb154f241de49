package detect

import (
	"bytes"
	"debug/elf"
)

// defined looks for a symbol that the object exports, as the loader does:
// through its hash table.
func (m *image) defined(name string) (address uint64, ok bool) {
	if _, has := m.dyn[elf.DT_GNU_HASH]; has {
		return m.gnuLookup(name)
	}
	return m.sysvLookup(name)
}

// exports reports whether the object exports any of the symbols.
func (m *image) exports(names ...string) bool {
	for _, name := range names {
		if _, ok := m.defined(name); ok {
			return true
		}
	}
	return false
}

// gnuLookup follows DT_GNU_HASH: a filter, then a bucket, then a chain of
// hashes that an odd value ends.
func (m *image) gnuLookup(name string) (uint64, bool) {
	table, ok := m.address(elf.DT_GNU_HASH)
	if !ok {
		return 0, false
	}
	var head struct{ Buckets, First, FilterWords, Shift uint32 }
	if m.decode(m.space, table, &head) != nil || head.Buckets == 0 || head.FilterWords == 0 {
		return 0, false
	}
	hash := gnuHash(name)
	var word uint64
	if m.decode(m.space, table+16+8*uint64(hash/64%head.FilterWords), &word) != nil {
		return 0, false
	}
	if word>>(hash%64)&1 == 0 || word>>(hash>>(head.Shift%32)%64)&1 == 0 {
		return 0, false
	}
	buckets := table + 16 + 8*uint64(head.FilterWords)
	chains := buckets + 4*uint64(head.Buckets)
	var index uint32
	if m.decode(m.space, buckets+4*uint64(hash%head.Buckets), &index) != nil || index < head.First {
		return 0, false
	}
	for range maxChain {
		var value uint32
		if m.decode(m.space, chains+4*uint64(index-head.First), &value) != nil {
			return 0, false
		}
		if value|1 == hash|1 {
			if a, ok := m.definedAt(index, name); ok {
				return a, true
			}
		}
		if value&1 == 1 {
			break
		}
		index++
	}
	return 0, false
}

const maxChain = 1 << 16

func gnuHash(name string) uint32 {
	h := uint32(5381)
	for i := range len(name) {
		h = h*33 + uint32(name[i])
	}
	return h
}

// sysvLookup follows DT_HASH.
func (m *image) sysvLookup(name string) (uint64, bool) {
	table, ok := m.address(elf.DT_HASH)
	if !ok {
		return 0, false
	}
	var head struct{ Buckets, Chains uint32 }
	if m.decode(m.space, table, &head) != nil || head.Buckets == 0 {
		return 0, false
	}
	at := table + 8 + 4*uint64(sysvHash(name)%head.Buckets)
	for range maxChain {
		var index uint32
		if m.decode(m.space, at, &index) != nil || index == 0 || index >= head.Chains {
			break
		}
		if a, ok := m.definedAt(index, name); ok {
			return a, true
		}
		at = table + 8 + 4*(uint64(head.Buckets)+uint64(index))
	}
	return 0, false
}

func sysvHash(name string) uint32 {
	var h uint32
	for i := range len(name) {
		h = h<<4 + uint32(name[i])
		h ^= h >> 24 & 0xf0
	}
	return h & 0x0fffffff
}

func (m *image) symbol(index uint32) (s elf.Sym64, ok bool) {
	table, ok := m.address(elf.DT_SYMTAB)
	if !ok {
		return s, false
	}
	return s, m.decode(m.space, table+elf.Sym64Size*uint64(index), &s) == nil
}

func (m *image) definedAt(index uint32, name string) (uint64, bool) {
	s, ok := m.symbol(index)
	if !ok || elf.SectionIndex(s.Shndx) == elf.SHN_UNDEF || s.Value == 0 {
		return 0, false
	}
	return s.Value, m.text(uint64(s.Name)) == name
}

// slots lists where the loader puts the address of a symbol: the places of
// all relocations that name it. Those of the procedure linkage table, which
// calls go through, come first.
func (m *image) slots(name string) []uint64 {
	var places []uint64
	for _, t := range []struct {
		table, size elf.DynTag
	}{{elf.DT_JMPREL, elf.DT_PLTRELSZ}, {elf.DT_RELA, elf.DT_RELASZ}} {
		places = append(places, m.relocations(t.table, t.size, name)...)
	}
	return places
}

func (m *image) relocations(table, size elf.DynTag, name string) []uint64 {
	at, ok := m.address(table)
	n := m.dyn[size]
	if !ok || n == 0 || elf.DynTag(m.dyn[elf.DT_PLTREL]) == elf.DT_REL {
		return nil // entries without addend are of 32-bit machines
	}
	raw, err := m.table(at, n)
	if err != nil {
		return nil
	}
	var last uint64
	for off := 0; off+24 <= len(raw); off += 24 {
		last = max(last, m.order.Uint64(raw[off+8:])>>32)
	}
	matches := m.namesakes(last, name)
	if len(matches) == 0 {
		return nil
	}
	var places []uint64
	for off := 0; off+24 <= len(raw); off += 24 {
		place, info, addend := m.order.Uint64(raw[off:]), m.order.Uint64(raw[off+8:]), m.order.Uint64(raw[off+16:])
		if addend == 0 && matches[info>>32] {
			places = append(places, place)
		}
	}
	return places
}

// namesakes is the set of symbols up to an index that have a name.
func (m *image) namesakes(last uint64, name string) map[uint64]bool {
	symbols, ok := m.address(elf.DT_SYMTAB)
	if !ok || last == 0 {
		return nil
	}
	raw, err := m.table(symbols, (last+1)*elf.Sym64Size)
	if err != nil {
		return nil
	}
	texts, ok := m.address(elf.DT_STRTAB)
	if !ok {
		return nil
	}
	names, err := m.table(texts, m.dyn[elf.DT_STRSZ])
	if err != nil {
		return nil
	}
	want := append([]byte(name), 0)
	found := map[uint64]bool{}
	for i := uint64(1); i <= last; i++ {
		at := uint64(m.order.Uint32(raw[i*elf.Sym64Size:]))
		if at < uint64(len(names)) && bytes.HasPrefix(names[at:], want) {
			found[i] = true
		}
	}
	return found
}
