package pickle

import (
	"errors"
	"fmt"
	"math/big"
)

type bigInt = *big.Int

var (
	errNoMark = errors.New("an opcode needs a mark and there is none")
	errCycle  = errors.New("a container is changed after its first use, as only one that contains itself would be; no snapshot has that")
)

// fresh returns an open container without items.
func fresh(kind Kind) Value { return tagged(tagFresh, uint64(kind)<<freshShift) }

func (v Value) freshKind() Kind { return Kind(v >> freshShift & 0xff) }

// freshMemo returns the number in the memo plus one, 0 for none.
func (v Value) freshMemo() uint { return uint(v & (1<<freshShift - 1)) }

func empty(kind Kind) Value { return tagged(tagEmpty, uint64(kind)) }

// KindOf returns the kind of a value.
func (m *Machine) KindOf(v Value) Kind {
	switch v.tag() {
	case tagNone:
		return None
	case tagBool:
		return Bool
	case tagInt, tagWide, tagBig:
		return Int
	case tagFloat:
		return Float
	case tagString:
		return String
	case tagBytes:
		return Bytes
	case tagEmpty:
		return Kind(v & payload)
	case tagObject:
		return m.objects.get(int(v & payload)).kind
	case tagRecord, tagRun:
		return Record
	case tagFresh:
		return v.freshKind()
	case tagOpen:
		return m.open[v&payload].kind
	}
	return Invalid
}

// Items returns the items of a container that the hook did not take, keys and
// values in turn for a dictionary, or nil. The slice belongs to the machine.
func (m *Machine) Items(v Value) []Value {
	switch v.tag() {
	case tagObject:
		o := m.objects.get(int(v & payload))
		return m.arena.chunks[o.chunk][o.pos : o.pos+o.n : o.pos+o.n]
	case tagOpen:
		if c := &m.open[v&payload]; c.closed == 0 {
			return c.items
		} else {
			return m.Items(c.closed)
		}
	case tagFresh:
		if now := m.current(v); now != v {
			return m.Items(now)
		}
	}
	return nil
}

// current returns what has become of an open container without items that has
// a memo entry.
func (m *Machine) current(v Value) Value {
	if i := v.freshMemo(); i > 0 {
		return m.memo.get(i - 1)
	}
	return v
}

// AsRun returns a row of consecutive records that stands for so many items of
// a list. A single record is a run of one.
func (v Value) AsRun() (kind uint8, first, count int, ok bool) {
	if v.tag() == tagRun {
		kind, first, count = v.run()
		return kind, first, count, true
	}
	kind, first, ok = v.AsRecord()
	return kind, first, 1, ok
}

// build completes a container: the hook takes it or it becomes an object.
func (m *Machine) build(kind Kind, items []Value) (Value, error) {
	if err := m.closeAll(items); err != nil {
		return 0, err
	}
	if len(items) == 0 {
		return empty(kind), nil
	}
	var v Value
	var err error
	switch kind {
	case Dict:
		if len(items)%2 != 0 {
			return 0, errors.New("a dictionary with a key that has no value")
		}
		v, err = m.hook.Dict(m, items)
	case Tuple:
		v, err = m.hook.Tuple(m, items)
	default:
		v, err = m.hook.List(m, items)
	}
	if v != 0 || err != nil {
		return v, err
	}
	return m.keep(kind, items)
}

// keep makes an object.
func (m *Machine) keep(kind Kind, items []Value) (Value, error) {
	if kind == List {
		items = compact(items)
	}
	depth := uint16(0)
	for _, v := range items {
		if v.tag() == tagObject {
			depth = max(depth, m.objects.get(int(v&payload)).depth)
		}
	}
	depth++
	if int(depth) > m.limits.Depth {
		return 0, m.tooDeep()
	}
	if m.arena.values+len(items) > m.limits.Values {
		return 0, &LimitError{"values of no known meaning", int64(m.limits.Values)}
	}
	chunk, pos := m.arena.add(items)
	return tagged(tagObject, uint64(m.objects.add(object{chunk, pos, uint32(len(items)), kind, depth}))), nil
}

// closeAll makes sure that all items are data.
func (m *Machine) closeAll(items []Value) error {
	for i, v := range items {
		if v.usable() {
			continue
		}
		v, err := m.close(v)
		if err != nil {
			return err
		}
		items[i] = v
	}
	return nil
}

// close completes an open container; other values stay as they are. It is the
// end of the value v: what was on the stack is not used again.
func (m *Machine) close(v Value) (Value, error) {
	closed, err := m.complete(v)
	if v.tag() == tagOpen && err == nil {
		m.release(int(v & payload))
	}
	return closed, err
}

// complete is close for a container that stays on the stack, where it is found
// to be complete when its turn comes.
func (m *Machine) complete(v Value) (Value, error) {
	switch v.tag() {
	case tagFresh:
		if now := m.current(v); now != v {
			return now, nil
		}
		closed := empty(v.freshKind())
		if i := v.freshMemo(); i > 0 {
			m.memo.set(i-1, closed)
		}
		return closed, nil
	case tagOpen:
		slot := int(v & payload)
		c := m.open[slot]
		if c.closed != 0 {
			return c.closed, nil
		}
		closed, err := m.build(c.kind, c.items)
		if err != nil {
			return 0, err
		}
		if c.memo > 0 {
			m.memo.set(c.memo-1, closed)
		}
		m.open[slot].closed = closed
		return closed, nil
	case tagGlobal:
		return 0, fmt.Errorf("%s is used as data", globals[v&payload].name)
	}
	return v, nil
}

// release frees a slot of open.
func (m *Machine) release(slot int) {
	c := &m.open[slot]
	c.memo, c.closed = 0, 0
	c.items = c.items[:0]
	if cap(c.items) > 1<<12 {
		c.items = nil
	}
	m.spare = append(m.spare, slot)
}

// fill puts items into the open container at place at of the stack.
func (m *Machine) fill(kind Kind, at int, items []Value) error {
	if at < m.floor() {
		return fmt.Errorf("items without %v to put them into", kind)
	}
	if err := m.closeAll(items); err != nil {
		return err
	}
	v := m.stack[at]
	if got := m.KindOf(v); v < firstOpen || got != kind {
		if got == kind || got == Record {
			return fmt.Errorf("%v is changed after its first use, which is not supported", kind)
		}
		return fmt.Errorf("items for %v are put into %v", kind, got)
	}
	if m.isComplete(v) {
		return errCycle
	}
	if kind == Dict && len(items)%2 != 0 {
		return errors.New("a dictionary with a key that has no value")
	}
	if len(items) == 0 {
		return nil
	}
	if v.tag() == tagFresh {
		v = m.promote(v)
		m.stack[at] = v
	}
	c := &m.open[v&payload]
	if len(c.items)+len(items) > m.limits.Values {
		return &LimitError{"items of one container", int64(m.limits.Values)}
	}
	if kind == Dict {
		c.items = append(c.items, items...)
		return nil
	}
	for _, item := range items {
		if n := len(c.items); n > 0 {
			if run, ok := join(c.items[n-1], item); ok {
				c.items[n-1] = run
				continue
			}
		}
		c.items = append(c.items, item)
	}
	return nil
}

// isComplete reports whether an open container was used already.
func (m *Machine) isComplete(v Value) bool {
	if v.tag() == tagOpen {
		return m.open[v&payload].closed != 0
	}
	return m.current(v) != v
}

// promote gives an open container a place for items.
func (m *Machine) promote(v Value) Value {
	var slot int
	if n := len(m.spare); n > 0 {
		slot = m.spare[n-1]
		m.spare = m.spare[:n-1]
	} else {
		slot = len(m.open)
		m.open = append(m.open, openContainer{})
	}
	c := &m.open[slot]
	c.kind = v.freshKind()
	c.memo = v.freshMemo()
	v = tagged(tagOpen, uint64(slot))
	if c.memo > 0 {
		m.memo.set(c.memo-1, v)
	}
	return v
}

// memoize names the top of the stack in the memo.
func (m *Machine) memoize(i uint) error {
	top := len(m.stack) - 1
	if top < 0 {
		return errors.New("nothing to put into the memo")
	}
	if old := m.memo.get(i); old.tag() > tagBytes {
		return fmt.Errorf("memo entry %d is used for a second container", i)
	}
	if i >= uint(m.limits.Memo) {
		return &LimitError{"memo entries", int64(m.limits.Memo)}
	}
	v := m.stack[top]
	switch v.tag() {
	case tagFresh:
		if v.freshMemo() != 0 {
			return fmt.Errorf("a container has two memo entries, %d and %d", v.freshMemo()-1, i)
		}
		v |= Value(i + 1)
		m.stack[top] = v
	case tagOpen:
		c := &m.open[v&payload]
		if c.memo != 0 {
			return fmt.Errorf("a container has two memo entries, %d and %d", c.memo-1, i)
		}
		c.memo = i + 1
	}
	if !m.memo.set(i, v) {
		return &LimitError{"memo entries out of order", maxSparse}
	}
	return nil
}

// recall returns a memo entry. A container must be complete by then: to change
// it afterwards is an error, and so is what makes cycles.
func (m *Machine) recall(i uint) (Value, error) {
	v := m.memo.get(i)
	switch {
	case v == 0:
		return 0, fmt.Errorf("memo entry %d is used before it is set", i)
	case v.tag() == tagGlobal:
		return v, nil
	}
	return m.complete(v)
}
