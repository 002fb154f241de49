package policy

import "fmt"

// How a fit chooses among the free blocks that are large enough.
const (
	best  = iota // the smallest, the lowest of equals
	first        // the lowest
	next         // the first after the last one that was handed out, going round
)

// fit is one range that grows at its end. What is free there is a hole like any
// other, and is extended when nothing fits.
type fit struct {
	a    *Allocator
	id   uint16
	kind int
	unit uint64
	free index // by size for best, else by address
	span
	top    int32  // the block at the end
	cursor uint64 // where next fit goes on
}

func newFit(kind int) func(*Allocator, uint16, Place) heap {
	return func(a *Allocator, id uint16, at Place) heap { return makeFit(a, id, at, kind) }
}

func makeFit(a *Allocator, id uint16, at Place, kind int) *fit {
	f := &fit{a: a, id: id, kind: kind, unit: unit, top: noBlock, span: span{a: a, stream: at.Stream, granule: granule}}
	f.free.tracks = kind != best
	if a.options.Exact {
		f.unit, f.granule = 1, 1
	}
	return f
}

// key returns the place of a free block in the order.
func (f *fit) key(i int32) key {
	b := &f.a.all[i]
	if f.kind == best {
		return key{b.size, b.addr}
	}
	return key{b.addr, b.size}
}

func (f *fit) take(size, _ uint64) (int32, error) { return f.takeRounded(up(size, f.unit)) }

func (f *fit) takeRounded(size uint64) (int32, error) {
	i := f.find(size)
	if i == noBlock {
		var err error
		if i, err = f.extend(size); err != nil {
			return 0, err
		}
		if f.kind != best {
			f.free.insert(f.key(i), i)
		}
	}
	if f.kind != best {
		f.cut(i, size)
	} else if f.a.all[i].size > size {
		rest := f.a.split(i, size)
		f.free.insert(f.key(rest), rest)
		if f.top == i {
			f.top = rest
		}
	}
	f.cursor = f.a.all[i].addr + size
	f.a.all[i].state = held
	return i, nil
}

// find returns a block that is large enough, or noBlock. Best fit takes it out of
// the index.
func (f *fit) find(size uint64) int32 {
	switch f.kind {
	case best:
		return f.free.takeCeiling(key{first: size})
	case first:
		return f.free.fitting(0, size)
	}
	i := f.free.fitting(f.cursor, size)
	if i == noBlock {
		i = f.free.fitting(0, size)
	}
	return i
}

// cut takes the lower part of a free block out of an index by address, where the
// rest keeps its place.
func (f *fit) cut(i int32, size uint64) {
	k := f.key(i)
	if f.a.all[i].size == size {
		f.free.remove(k)
		return
	}
	rest := f.a.split(i, size)
	f.free.replace(k, f.key(rest), rest)
	if f.top == i {
		f.top = rest
	}
}

// extend grows the range until its end has a free block of that size, which it
// takes out of the index.
func (f *fit) extend(size uint64) (int32, error) {
	all := f.a.all
	if t := f.top; t != noBlock && all[t].state == free {
		k := f.key(t)
		more, err := f.grow(size - all[t].size)
		if err != nil {
			return 0, err
		}
		f.free.remove(k)
		all[t].size += more
		return t, nil
	}
	from := f.end
	more, err := f.grow(size)
	if err != nil {
		return 0, err
	}
	if f.top == noBlock {
		from = f.base
	}
	i := f.a.add(f.id, from, more, free)
	if f.top != noBlock {
		f.a.after(f.top, i)
	}
	f.top = i
	return i, nil
}

func (f *fit) give(i int32) error {
	a := f.a
	if n := a.all[i].next; n != noBlock && a.all[n].state == free {
		f.free.remove(f.key(n))
		if f.top == n {
			f.top = i
		}
		a.join(i)
	}
	a.all[i].state = free
	if p := a.all[i].prev; p != noBlock && a.all[p].state == free {
		f.free.remove(f.key(p))
		if f.top == i {
			f.top = p
		}
		a.join(p)
		i = p
	}
	f.free.insert(f.key(i), i)
	return nil
}

// trim gives back whole granules at the end.
func (f *fit) trim() error {
	t := f.top
	if t == noBlock || f.a.all[t].state != free {
		return nil
	}
	b := &f.a.all[t]
	from := f.base + up(b.addr-f.base, f.granule)
	if from >= f.end {
		return nil
	}
	k := f.key(t)
	if err := f.shrink(from); err != nil {
		return err
	}
	f.free.remove(k)
	if from > b.addr {
		b.size = from - b.addr
		f.free.insert(f.key(t), t)
		return nil
	}
	f.top = b.prev
	if f.top != noBlock {
		f.a.all[f.top].next = noBlock
	}
	f.a.drop(t)
	return nil
}

func (f *fit) synchronize() error { return nil }

func (f *fit) check() (reserved, given uint64, err error) {
	at, holes := f.end, 0
	for i, above := f.top, int32(noBlock); i != noBlock; i, above = f.a.all[i].prev, i {
		b := &f.a.all[i]
		switch {
		case b.addr+b.size != at || b.next != above:
			return 0, 0, fmt.Errorf("block at %#x does not end at %#x", b.addr, at)
		case b.state == free && above != noBlock && f.a.all[above].state == free:
			return 0, 0, fmt.Errorf("free block at %#x is not merged with the next one", b.addr)
		case b.state == free:
			holes++
		default:
			given += b.size
		}
		at = b.addr
	}
	if at != f.base {
		return 0, 0, fmt.Errorf("the lowest block begins at %#x, the range at %#x", at, f.base)
	}
	return f.end - f.base, given, f.free.check(f.a, holes, f.key)
}

// check looks whether an index has exactly the free blocks that it should have.
func (x *index) check(a *Allocator, count int, keyOf func(int32) key) (err error) {
	n := 0
	x.each(func(k key, block int32) {
		n++
		if s := a.all[block].state; s != free && s != loose || keyOf(block) != k {
			err = fmt.Errorf("the index has a block at %#x that is not free", a.all[block].addr)
		}
	})
	if n != count || x.count != count {
		return fmt.Errorf("%d free blocks, the index has %d", count, n)
	}
	return err
}
