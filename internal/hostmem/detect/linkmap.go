package detect

import (
	"debug/elf"
)

// The loader keeps a list of all objects for debuggers, in the order in which
// it looks for symbols: the program, what is preloaded, what they were linked
// with, what was loaded later. The program's dynamic section leads to it.
//
//	struct r_debug  { int version; link_map *map; addr brk; int state; addr ldbase; }
//	struct link_map { addr bias; char *name; Dyn *dynamic; link_map *next, *previous; }

const (
	debugMap      = 8
	debugState    = 24
	mapName       = 8
	mapDynamic    = 16
	mapNext       = 24
	stateComplete = 0
	maxObjects    = 1 << 16
)

// readLinkMap sets the order of objects.
func (t *target) readLinkMap() {
	debug, ok := t.debugAddress()
	if !ok {
		return
	}
	var state [4]byte
	if _, err := t.mem.ReadAt(state[:], int64(debug+debugState)); err != nil {
		return
	}
	next, err := t.mem.Word(debug + debugMap)
	if err != nil || next == 0 || state != [4]byte{stateComplete} {
		t.loading = true
		return
	}
	var order []*object
	for range maxObjects {
		if next == 0 {
			break
		}
		dynamic, err := t.mem.Word(next + mapDynamic)
		if err != nil {
			return
		}
		// What is not found here is the kernel's own, the vDSO.
		if o := t.objectAt(dynamic); o != nil {
			order = append(order, o)
			if name, err := t.mem.Word(next + mapName); err == nil && name != 0 {
				o.loaded = (&image{space: t.mem}).cstring(name)
			}
		}
		if next, err = t.mem.Word(next + mapNext); err != nil {
			return
		}
	}
	if len(order) == 0 {
		return
	}
	t.order = order
	if t.program == nil || t.program.interp == "" {
		// The loader was called as a program: the first of its list is ours.
		t.program = order[0]
	}
}

// debugAddress finds r_debug: DT_DEBUG of the program, or the loader's symbol
// if the loader itself was called.
func (t *target) debugAddress() (uint64, bool) {
	if p := t.program; p != nil && p.interp != "" && p.dynAddr != 0 {
		for at := p.dynAddr; at < p.dynAddr+p.dynSize; at += 16 {
			tag, err := t.mem.Word(at + p.bias)
			if err != nil || elf.DynTag(tag) == elf.DT_NULL {
				break
			}
			if elf.DynTag(tag) != elf.DT_DEBUG {
				continue
			}
			v, err := t.mem.Word(at + p.bias + 8)
			if err != nil {
				break
			}
			t.loading = v == 0
			return v, v != 0
		}
		return 0, false
	}
	if t.program != nil {
		if a, ok := t.program.defined("_r_debug"); ok {
			return a + t.program.bias, true
		}
	}
	return 0, false
}
