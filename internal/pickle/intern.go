package pickle

import "encoding/binary"

// textCache finds the numbers of short texts without asking the hook. PyTorch
// writes some of them anew for each event.
type textCache [256]struct {
	head, tail uint64
	size       int
	value      Value
}

// PushText puts a text on the stack. The bytes are only lent.
func (m *Machine) PushText(text []byte) error {
	v, err := m.intern(text)
	if err != nil {
		return err
	}
	return m.Push(v)
}

// intern returns the value of a text.
func (m *Machine) intern(b []byte) (Value, error) {
	var head, tail uint64
	switch n := len(b); {
	case n > 16 || n == 0:
		id, err := m.hook.Intern(b)
		return MakeString(id), err
	case n >= 8:
		head, tail = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		head, tail = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	default:
		head = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	e := &m.texts[(head*0x9E3779B97F4A7C15^tail*0xC2B2AE3D27D4EB4F^uint64(len(b)))>>56]
	if e.value != 0 && e.head == head && e.tail == tail && e.size == len(b) {
		return e.value, nil
	}
	id, err := m.hook.Intern(b)
	if err != nil {
		return 0, err
	}
	e.head, e.tail, e.size, e.value = head, tail, len(b), MakeString(id)
	return e.value, nil
}
