package pickle

import (
	"errors"
	"fmt"
)

// globals are the names that are let through: they stand for data.
var globals = [...]struct {
	name string
	call func(m *Machine, args []Value) (Value, error)
}{
	{"collections.OrderedDict", orderedDict},
	{"torch.jit._pickle.restore_type_tag", firstArg}, // (value, name of its type)
	{"torch.jit._pickle.build_intlist", firstArg},
	{"torch.jit._pickle.build_doublelist", firstArg},
	{"torch.jit._pickle.build_boollist", firstArg},
}

func firstArg(_ *Machine, args []Value) (Value, error) {
	if len(args) == 0 {
		return 0, errors.New("a type tag without a value")
	}
	return args[0], nil
}

// orderedDict is a dictionary, empty or from a list of pairs.
func orderedDict(m *Machine, args []Value) (Value, error) {
	if len(args) == 0 {
		return fresh(Dict), nil
	}
	var pairs []Value
	for _, v := range m.Items(args[0]) {
		pair := m.Items(v)
		if len(pair) != 2 {
			return 0, errors.New("an OrderedDict of something else than pairs")
		}
		pairs = append(pairs, pair...)
	}
	if len(pairs) == 0 {
		return fresh(Dict), nil
	}
	v := m.promote(fresh(Dict))
	m.open[v&payload].items = append(m.open[v&payload].items, pairs...)
	return v, nil
}

// global pushes one of the globals that are let through.
func (d *Decoder) global(op byte) error {
	m := d.machine
	start := d.offset() - 1
	var name string
	if op == opGlobal {
		module, err := d.line(d.machine.limits.String)
		if err != nil {
			return err
		}
		name = string(clip(module)) + "."
		attribute, err := d.line(d.machine.limits.String)
		if err != nil {
			return err
		}
		name += string(clip(attribute))
	} else {
		top := len(m.stack) - 2
		if top < m.floor() {
			return errUnderflow
		}
		module, ok1 := m.stack[top].AsString()
		attribute, ok2 := m.stack[top+1].AsString()
		if !ok1 || !ok2 {
			return fmt.Errorf("STACK_GLOBAL with %v and %v for names", m.KindOf(m.stack[top]), m.KindOf(m.stack[top+1]))
		}
		name = string(clip([]byte(m.hook.Text(module)))) + "." + string(clip([]byte(m.hook.Text(attribute))))
		m.stack = m.stack[:top]
	}
	for i := range globals {
		if globals[i].name == name {
			return m.Push(tagged(tagGlobal, uint64(i)))
		}
	}
	return &ForbiddenError{start, name}
}

// reduce calls one of those globals.
func (d *Decoder) reduce() error {
	m := d.machine
	top := len(m.stack) - 2
	if top < m.floor() {
		return errUnderflow
	}
	f, args := m.stack[top], m.stack[top+1]
	if f.tag() != tagGlobal {
		return &ForbiddenError{d.offset() - 1, fmt.Sprintf("a call (opcode REDUCE) of %v", m.KindOf(f))}
	}
	if m.KindOf(args) != Tuple {
		return fmt.Errorf("a call with %v for arguments", m.KindOf(args))
	}
	v, err := globals[f&payload].call(m, m.Items(args))
	if err != nil {
		return err
	}
	m.stack = append(m.stack[:top], v)
	return nil
}

// forbid refuses an opcode.
func (d *Decoder) forbid(op byte, name string) error {
	start := d.offset()
	name = "an object (opcode " + name + ")"
	if op == opInst {
		d.pos++
		if module, err := d.line(d.machine.limits.String); err == nil {
			text := string(clip(module)) + "."
			if class, err := d.line(d.machine.limits.String); err == nil {
				name = text + string(clip(class))
			}
		}
	}
	return &ForbiddenError{start, name}
}
