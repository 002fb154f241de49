package pickle

import (
	"errors"
	"slices"
)

var errUnderflow = errors.New("an opcode needs more values than there are")

// gather makes an open container of all values above the mark.
func (m *Machine) gather(kind Kind) error {
	at, err := m.unmark()
	if err != nil {
		return err
	}
	if len(m.stack) == at {
		return m.Push(fresh(kind))
	}
	items := slices.Clone(m.stack[at:]) // the container takes their place
	m.stack = append(m.stack[:at], m.promote(fresh(kind)))
	return m.fill(kind, at, items)
}

// gatherClosed makes a tuple or frozen set of all values above the mark.
func (m *Machine) gatherClosed(op byte) error {
	at, err := m.unmark()
	if err != nil {
		return err
	}
	if op == opTuple {
		return m.tuple(at)
	}
	v, err := m.build(List, m.stack[at:])
	if err != nil {
		return err
	}
	m.stack = append(m.stack[:at], v)
	return nil
}

// tuple makes a tuple of the values from at on. The arguments of a call are
// not shown to the hook.
func (m *Machine) tuple(at int) error {
	if at < m.floor() {
		return errUnderflow
	}
	items := m.stack[at:]
	var v Value
	var err error
	if at > 0 && m.stack[at-1].tag() == tagGlobal && len(items) > 0 {
		if err = m.closeAll(items); err == nil {
			v, err = m.keep(Tuple, items)
		}
	} else {
		v, err = m.build(Tuple, items)
	}
	if err != nil {
		return err
	}
	m.stack = append(m.stack[:at], v)
	return nil
}

// fillMarked puts the values above the mark into the container below it.
func (m *Machine) fillMarked(kind Kind) error {
	at, err := m.unmark()
	if err != nil {
		return err
	}
	if err := m.fill(kind, at-1, m.stack[at:]); err != nil {
		return err
	}
	m.stack = m.stack[:at]
	return nil
}

// fillOne puts the n topmost values into the container below them. complete
// says that nothing more will follow.
func (m *Machine) fillOne(kind Kind, n int, complete bool) error {
	at := len(m.stack) - n
	if at-1 < m.floor() {
		return errUnderflow
	}
	below := m.stack[at-1]
	if complete && below.tag() == tagFresh && below.freshKind() == kind && !m.isComplete(below) {
		v, err := m.build(kind, m.stack[at:])
		if err != nil {
			return err
		}
		if i := below.freshMemo(); i > 0 {
			m.memo.set(i-1, v)
		}
		m.stack = append(m.stack[:at-1], v)
		return nil
	}
	if err := m.fill(kind, at-1, m.stack[at:]); err != nil {
		return err
	}
	m.stack = m.stack[:at]
	return nil
}

// shuffle executes POP, POP_MARK and DUP.
func (m *Machine) shuffle(op byte) error {
	top := len(m.stack) - 1
	switch {
	case op == opPopMark:
		at, err := m.unmark()
		if err != nil {
			return err
		}
		return m.drop(at)
	case op == opPop && len(m.marks) > 0 && m.floor() == len(m.stack):
		m.marks = m.marks[:len(m.marks)-1]
		return nil
	case top < m.floor():
		return errUnderflow
	case op == opPop:
		return m.drop(top)
	}
	v := m.stack[top]
	if v.tag() != tagGlobal {
		var err error
		if v, err = m.complete(v); err != nil {
			return err
		}
	}
	return m.Push(v)
}

// drop removes the values from at on. What the memo knows is completed, as it
// may come back.
func (m *Machine) drop(at int) error {
	for _, v := range m.stack[at:] {
		switch {
		case v.tag() == tagOpen && m.open[v&payload].memo == 0: // nobody will see it
			m.release(int(v & payload))
		case v.tag() != tagGlobal:
			if _, err := m.close(v); err != nil {
				return err
			}
		}
	}
	m.stack = m.stack[:at]
	return nil
}
