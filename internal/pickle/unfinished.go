package pickle

// Unfinished is what a machine holds when its input ends early.
type Unfinished struct {
	Pairs []Value // keys and values of the outermost dictionary that are complete
	Key   Value   // the key after those, 0 for none
	Open  []Value // what was being read for it, the outer containers before the inner ones
}

// Unfinished tells how far reading got. The values in Open are records and
// containers, of which some are still open: [Machine.Items] works for both. A
// container there is followed by those of its items that it does not hold yet.
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
	rest := m.stack[1:]
	for len(rest) > 0 {
		if rest[0].tag() != tagString {
			break // a dictionary has been left in the middle
		}
		if len(rest) < 3 || rest[2].tag() != tagString {
			u.Key, u.Open = rest[0], rest[1:]
			break
		}
		v, err := m.complete(rest[1])
		if err != nil {
			return u, err
		}
		u.Pairs = append(u.Pairs, rest[0], v)
		rest = rest[2:]
	}
	return u, nil
}
