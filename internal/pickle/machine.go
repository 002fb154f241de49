package pickle

import "fmt"

// Hook is what the caller wants from the data.
type Hook interface {
	// Intern returns the number of a text or of a bytes object in the
	// caller's table. The bytes are only lent. Text is the way back.
	Intern(text []byte) (uint32, error)
	Text(id uint32) string

	// Dict is shown the keys and values of a complete dictionary, one after
	// the other; List and Tuple are shown items. A key may come twice, the
	// last one counts. Items may contain runs of records, see [Value.AsRun].
	// The slices are only lent. Each returns what is to stand for the
	// container, most often a record, or 0 to have it kept as it is.
	//
	// Empty containers are not shown.
	Dict(m *Machine, pairs []Value) (Value, error)
	List(m *Machine, items []Value) (Value, error)
	Tuple(m *Machine, items []Value) (Value, error)
}

// Machine is the stack machine: a stack of values with marks, a memo, and the
// containers on their way. Make one with NewMachine.
type Machine struct {
	hook   Hook
	limits Limits

	stack []Value
	marks []int // positions in stack
	memo  memo
	texts textCache

	open    []openContainer
	spare   []int // positions in open
	objects table[object]
	arena   arena

	wides  table[uint64]
	floats table[float64]
	bigs   table[bigInt]
}

// openContainer is a list or dictionary that may still get items.
type openContainer struct {
	kind   Kind
	memo   uint // number in the memo plus one
	items  []Value
	closed Value // what it has become, if it was used and is still on the stack
}

// NewMachine returns an empty machine.
func NewMachine(hook Hook, limits Limits) *Machine {
	return &Machine{hook: hook, limits: limits.WithDefaults(), stack: make([]Value, 0, 256)}
}

// Push puts a value on the stack.
func (m *Machine) Push(v Value) error {
	if len(m.stack) == cap(m.stack) {
		if err := m.grow(); err != nil {
			return err
		}
	}
	m.stack = append(m.stack, v)
	return nil
}

// grow makes room on the stack.
func (m *Machine) grow() error {
	m.compact()
	if len(m.stack) <= cap(m.stack)/2 {
		return nil
	}
	if len(m.stack) >= m.limits.Stack {
		return &LimitError{"values on the stack", int64(m.limits.Stack)}
	}
	bigger := make([]Value, len(m.stack), 2*cap(m.stack))
	copy(bigger, m.stack)
	m.stack = bigger
	return nil
}

// minStack is how much of the top of the stack compact leaves alone: opcodes
// that take a fixed number of values must find them as they were pushed.
const minStack = 8

// compact replaces rows of consecutive records on the stack by runs, where they
// are to be items of a list. PyTorch's C++ pickler piles up a whole trace
// before it makes a list of it.
func (m *Machine) compact() {
	from, kept := 0, 0
	for i := 0; i <= len(m.marks); i++ {
		end := len(m.stack)
		if i < len(m.marks) {
			end = m.marks[i]
		}
		items := m.stack[from:end]
		if i > 0 && kept > 0 && m.stack[kept-1] >= firstOpen && m.KindOf(m.stack[kept-1]) == List {
			rows := max(0, len(items)-minStack)
			items = append(compact(items[:rows]), items[rows:]...)
		}
		kept += copy(m.stack[kept:], items)
		from = end
		if i < len(m.marks) {
			m.marks[i] = kept
		}
	}
	m.stack = m.stack[:kept]
}

// Mark marks the stack: what is pushed from here on are items.
func (m *Machine) Mark() error {
	if len(m.marks) > m.limits.Depth {
		return m.tooDeep()
	}
	m.marks = append(m.marks, len(m.stack))
	return nil
}

func (m *Machine) tooDeep() error {
	return &LimitError{"containers inside each other", int64(m.limits.Depth)}
}

// unmark removes the last mark and returns its place in the stack.
func (m *Machine) unmark() (int, error) {
	n := len(m.marks)
	if n == 0 {
		return 0, errNoMark
	}
	at := m.marks[n-1]
	m.marks = m.marks[:n-1]
	return at, nil
}

// floor is the lowest place in the stack that an opcode may touch.
func (m *Machine) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

// Begin starts a list or dictionary whose items (or keys and values) follow.
func (m *Machine) Begin(kind Kind) error {
	if err := m.Push(fresh(kind)); err != nil {
		return err
	}
	return m.Mark()
}

// End completes what the last Begin started.
func (m *Machine) End() error {
	at, err := m.unmark()
	if err != nil {
		return err
	}
	v, err := m.build(m.KindOf(m.stack[at-1]), m.stack[at:])
	if err != nil {
		return err
	}
	m.stack = append(m.stack[:at-1], v)
	return nil
}

// Result returns the one value that is left at the end.
func (m *Machine) Result() (Value, error) {
	if len(m.stack) == 0 {
		return 0, fmt.Errorf("the end comes before any value")
	}
	v, err := m.close(m.stack[len(m.stack)-1])
	if err == nil {
		m.stack[len(m.stack)-1] = v
	}
	return v, err
}
