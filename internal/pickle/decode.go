package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Decoder runs a pickle on a machine.
type Decoder struct {
	window
	machine *Machine
}

// NewDecoder returns a decoder that reads from r. It buffers by itself.
func NewDecoder(r io.Reader, m *Machine) *Decoder {
	return &Decoder{window: newWindow(r, m.limits.Bytes), machine: m}
}

// Offset returns the number of bytes read up to now.
func (d *Decoder) Offset() int64 { return d.offset() }

// Buffered returns what was read from the file beyond the end of the pickle.
func (d *Decoder) Buffered() []byte { return d.buf[d.pos:d.end] }

// Decode runs the pickle to its end and returns the value it leaves. Errors are
// [*ForbiddenError], [*TruncatedError], or others in an [*Error] with their place.
func (d *Decoder) Decode() (Value, error) {
	if err := d.run(); err != nil {
		return 0, withOffset(d.offset(), err)
	}
	v, err := d.machine.Result()
	return v, withOffset(d.offset(), err)
}

// run executes opcodes up to STOP. Those that make up nearly all of a snapshot
// are here, with window and stack in local variables; d.executeRare has the rest.
func (d *Decoder) run() error {
	m := d.machine
	buf, pos, end := d.buf, d.pos, d.end
	stack := m.stack
	for {
		if end-pos < minWindow {
			d.pos = pos
			enough := d.fill(minWindow)
			buf, pos, end = d.buf, d.pos, d.end
			if !enough && (pos == end || end-pos <= int(argBytes[buf[pos]])) {
				m.stack = stack
				return d.ended()
			}
		}
		if len(stack) == cap(stack) {
			m.stack = stack
			if err := m.grow(); err != nil {
				d.pos = pos
				return err
			}
			stack = m.stack
		}
		var v Value // to be pushed
		op := buf[pos]
		switch op {
		case opLongBinGet, opBinGet:
			// Frames of stacks and keys of events: these come in rows.
			for {
				i, size := uint(buf[pos+1]), 2
				if op == opLongBinGet {
					i, size = uint(binary.LittleEndian.Uint32(buf[pos+1:])), 5
				}
				v = 0
				if c := i >> memoBits; c < uint(len(m.memo.chunks)) {
					v = m.memo.chunks[c][i&memoMask]
				}
				if !v.usable() {
					var err error
					if v, err = m.recall(i); err != nil {
						d.pos = pos
						return err
					}
				}
				pos += size
				if end-pos < minWindow || len(stack)+1 >= cap(stack) {
					break
				}
				op = buf[pos]
				if op != opLongBinGet && op != opBinGet {
					break
				}
				stack = append(stack, v)
			}

		case opBinInt1:
			v = smallInt(int64(buf[pos+1]))
			pos += 2

		case opBinInt2:
			v = smallInt(int64(binary.LittleEndian.Uint16(buf[pos+1:])))
			pos += 3

		case opBinInt:
			v = smallInt(int64(int32(binary.LittleEndian.Uint32(buf[pos+1:]))))
			pos += 5

		case opLong1:
			n := int(buf[pos+1])
			if n == 0 || n > 7 || pos+10 > end {
				goto other
			}
			shift := 64 - 8*n
			v = smallInt(int64(binary.LittleEndian.Uint64(buf[pos+2:])<<shift) >> shift)
			pos += 2 + n

		case opShortBinUnicode:
			n := int(buf[pos+1])
			if pos+2+n > end {
				goto other
			}
			var err error
			if v, err = m.intern(buf[pos+2 : pos+2+n]); err != nil {
				d.pos = pos
				return err
			}
			pos += 2 + n

		case opEmptyDict:
			v = fresh(Dict)
			pos++

		case opEmptyList:
			v = fresh(List)
			pos++

		case opMark:
			if len(m.marks) > m.limits.Depth {
				d.pos = pos
				return m.tooDeep()
			}
			m.marks = append(m.marks, len(stack))
			pos++
			continue

		case opMemoize:
			m.stack = stack
			if err := m.memoize(m.memo.count); err != nil {
				d.pos = pos
				return err
			}
			pos++
			continue

		case opSetItems, opAppends:
			// Only here where the next opcode says that this is all.
			if len(m.marks) == 0 {
				goto other
			}
			next := nextOp(buf[pos:end])
			at := m.marks[len(m.marks)-1]
			kind := List
			if op == opSetItems {
				kind = Dict
				if !completesDict[next] {
					goto other
				}
			} else if !takes[next] {
				goto other
			}
			if at == 0 || stack[at-1]&^(1<<freshShift-1) != fresh(kind) || m.current(stack[at-1]) != stack[at-1] {
				goto other
			}
			m.marks = m.marks[:len(m.marks)-1]
			if at-1 < m.floor() {
				d.pos = pos
				return fmt.Errorf("items without %v to put them into", kind)
			}
			d.pos, m.stack = pos, stack
			v, err := m.build(kind, stack[at:])
			if err != nil {
				d.pos = pos
				return err
			}
			if i := stack[at-1].freshMemo(); i > 0 {
				m.memo.set(i-1, v)
			}
			stack = append(stack[:at-1], v)
			pos++
			continue

		default:
			goto other
		}
		stack = append(stack, v)
		continue

	other:
		d.pos, m.stack = pos, stack
		done, err := d.executeRare(op)
		if done || err != nil {
			return err
		}
		buf, pos, end = d.buf, d.pos, d.end
		stack = m.stack
	}
}

// executeRare executes the opcode at d.pos, whose fixed bytes are all in the window. It
// reports whether it was STOP. On an error d.pos is still at the opcode, unless
// the window moved.
func (d *Decoder) executeRare(op byte) (bool, error) {
	m := d.machine
	start := d.offset()
	arg := d.buf[d.pos+1 : d.pos+1+int(argBytes[op])]
	next := nextOp(d.buf[d.pos:d.end])
	if name, ok := forbidden[op]; ok {
		return false, d.forbid(op, name)
	}
	d.pos += 1 + len(arg)
	var err error
	switch op {
	case opStop:
		return true, nil
	case opProto:
		if arg[0] > 5 {
			err = fmt.Errorf("pickle protocol %d is newer than 5, the newest known", arg[0])
		}
	case opFrame:
	case opMark:
		err = m.Mark()
	case opNone:
		err = m.Push(MakeNone())
	case opNewTrue:
		err = m.Push(MakeBool(true))
	case opNewFalse:
		err = m.Push(MakeBool(false))
	case opBinFloat:
		err = m.Push(m.MakeFloat(math.Float64frombits(binary.BigEndian.Uint64(arg))))
	case opInt, opLong, opFloat, opString, opUnicode, opGet, opPut:
		err = d.textual(op)
	case opLong1:
		err = d.long(int64(arg[0]))
	case opLong4:
		err = d.long(int64(int32(binary.LittleEndian.Uint32(arg))))
	case opShortBinUnicode, opShortBinString, opShortBinBytes:
		err = d.text(op, uint64(arg[0]))
	case opBinUnicode, opBinString, opBinBytes:
		err = d.text(op, uint64(binary.LittleEndian.Uint32(arg)))
	case opBinUnicode8, opBinBytes8, opByteArray8:
		err = d.text(op, binary.LittleEndian.Uint64(arg))
	case opEmptyTuple:
		err = m.Push(empty(Tuple))
	case opEmptySet:
		err = m.Push(fresh(List))
	case opBinPut:
		err = m.memoize(uint(arg[0]))
	case opLongBinPut:
		err = m.memoize(uint(binary.LittleEndian.Uint32(arg)))
	case opMemoize:
		err = m.memoize(m.memo.count)
	case opList:
		err = m.gather(List)
	case opDict:
		err = m.gather(Dict)
	case opTuple, opFrozenSet:
		err = m.gatherClosed(op)
	case opTuple1, opTuple2, opTuple3:
		err = m.tuple(len(m.stack) - int(op-opTuple1) - 1)
	case opAppend:
		err = m.fillOne(List, 1, takes[next])
	case opSetItem:
		err = m.fillOne(Dict, 2, completesDict[next])
	case opAppends, opAddItems:
		err = m.fillMarked(List)
	case opSetItems:
		err = m.fillMarked(Dict)
	case opPop, opPopMark, opDup:
		err = m.shuffle(op)
	case opGlobal, opStackGlobal:
		err = d.global(op)
	case opReduce:
		err = d.reduce()
	default:
		err = unknownOp(op)
	}
	return false, withOffset(start, err)
}

// nextOp returns the opcode behind one without arguments, 0 at the end of the
// window. A FRAME between them only shows how the file is divided.
func nextOp(b []byte) byte {
	switch {
	case len(b) < 2:
		return 0
	case b[1] != opFrame:
		return b[1]
	case len(b) < 2+maxOp:
		return 0
	}
	return b[1+maxOp]
}

// withOffset adds the offset to an error that has none.
func withOffset(offset int64, err error) error {
	if err == nil {
		return nil
	}
	var truncated *TruncatedError
	var refused *ForbiddenError
	var placed *Error
	if errors.As(err, &truncated) || errors.As(err, &refused) || errors.As(err, &placed) {
		return err
	}
	return &Error{offset, err}
}
