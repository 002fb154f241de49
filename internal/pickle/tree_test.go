package pickle

import (
	"fmt"
	"math/big"
	"strings"
)

// treeHook takes nothing, or only dictionaries with a key "row", and writes
// values in a form like Python's repr.
type treeHook struct {
	texts []string
	ids   map[string]uint32
	rows  []string
	calls int // of Dict, List and Tuple
}

func (h *treeHook) Intern(text []byte) (uint32, error) {
	if h.ids == nil {
		h.ids = map[string]uint32{}
	}
	id, ok := h.ids[string(text)]
	if !ok {
		id = uint32(len(h.texts))
		h.texts = append(h.texts, string(text))
		h.ids[string(text)] = id
	}
	return id, nil
}

func (h *treeHook) Text(id uint32) string { return h.texts[id] }

func (h *treeHook) Dict(m *Machine, pairs []Value) (Value, error) {
	h.calls++
	if id, ok := pairs[0].AsString(); !ok || h.texts[id] != "row" {
		return 0, nil
	}
	h.rows = append(h.rows, h.repr(m, pairs[1]))
	return MakeRecord(1, len(h.rows)-1), nil
}

func (h *treeHook) List(*Machine, []Value) (Value, error)  { h.calls++; return 0, nil }
func (h *treeHook) Tuple(*Machine, []Value) (Value, error) { h.calls++; return 0, nil }

func (h *treeHook) repr(m *Machine, v Value) string {
	if kind, first, n, ok := v.AsRun(); ok {
		var rows []string
		for i := range n {
			rows = append(rows, fmt.Sprintf("row%d(%s)", kind, h.rows[first+i]))
		}
		return strings.Join(rows, ", ")
	}
	list := func(step int, items []Value) string {
		var out []string
		for i := 0; i < len(items); i += step {
			text := h.repr(m, items[i])
			if step == 2 {
				text += ": " + h.repr(m, items[i+1])
			}
			out = append(out, text)
		}
		return strings.Join(out, ", ")
	}
	switch m.KindOf(v) {
	case None:
		return "None"
	case Bool:
		if b, _ := v.AsBool(); b {
			return "True"
		}
		return "False"
	case Int:
		n, _ := m.Big(v)
		return n.String()
	case Float:
		x, _ := m.Float(v)
		return fmt.Sprint(x)
	case String:
		id, _ := v.AsString()
		return fmt.Sprintf("%q", h.texts[id])
	case Bytes:
		id, _ := v.AsBytes()
		return fmt.Sprintf("b%q", h.texts[id])
	case List:
		return "[" + list(1, m.Items(v)) + "]"
	case Tuple:
		return "(" + list(1, m.Items(v)) + ")"
	case Dict:
		return "{" + list(2, m.Items(v)) + "}"
	}
	return "?"
}

// decode runs a pickle and returns what it leaves.
func decode(data string, limits Limits) (string, error) {
	h := &treeHook{}
	m := NewMachine(h, limits)
	v, err := NewDecoder(strings.NewReader(data), m).Decode()
	if err != nil {
		return "", err
	}
	return h.repr(m, v), nil
}

func pow2(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }
