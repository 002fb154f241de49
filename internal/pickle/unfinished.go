package pickle

// Unfinished is what a machine holds when its input ends early.
type Unfinished struct {
	Pairs []Value // keys and values of the outermost dictionary that are complete
	Key   Value   // the key after those, 0 for none
	Open  []Value // what was being read for it, the outer containers before the inner ones
}

// Unfinished returns what was being read when the input ended. The values in Open
// are records and containers, some of them still open: [Machine.Items] works for
// both. A container there is followed by the items that it does not hold yet.
func (m *Machine) Unfinished() (Unfinished, error) {
	var u Unfinished
	if len(m.stack) == 0 {
		return u, nil
	}
	if m.KindOf(m.stack[0]) != Dict {
		u.Open = m.stack
		return u, nil
	}
	u.Pairs = append(u.Pairs, m.Items(m.stack[0])...)
	end := len(m.stack) // of what belongs to this dictionary itself
	for _, mark := range m.marks {
		if mark > 1 {
			end = mark
			break
		}
	}
	for at := 1; at < end && m.stack[at].tag() == tagString; at += 2 {
		if at+2 >= end || m.stack[at+2].tag() != tagString {
			u.Key, u.Open = m.stack[at], m.stack[at+1:]
			break
		}
		v, err := m.complete(m.stack[at+1])
		if err != nil {
			return u, err
		}
		u.Pairs = append(u.Pairs, m.stack[at], v)
	}
	return u, nil
}
