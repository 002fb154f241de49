package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/ashlar-mem/ashlar/trace"
)

// pickleEncoder writes protocol 4. Texts, frames and stacks get memo entries;
// other containers come only once.
type pickleEncoder struct {
	w      io.Writer
	err    error
	frame  []byte
	open   []openPickle
	memo   uint32 // entries
	texts  map[string]uint32
	tables map[*trace.Stacks]*sharedMemo
	now    *sharedMemo
}

type openPickle struct {
	list  bool
	items int // since the last APPENDS
}

// sharedMemo holds the memo entries, plus one, of one table's frames and stacks.
type sharedMemo struct{ frames, stacks []uint32 }

// Python cuts a pickle into frames of about this size, and lists into batches.
const (
	frameSize = 64 << 10
	batchSize = 1000
)

func newPickleEncoder(w io.Writer) *pickleEncoder {
	e := &pickleEncoder{w: w, texts: map[string]uint32{}, tables: map[*trace.Stacks]*sharedMemo{}}
	_, e.err = w.Write([]byte{0x80, 4})
	e.frame = make([]byte, 9, frameSize+4096) // opcode and length come first
	return e
}

func (e *pickleEncoder) failed() bool { return e.err != nil }

func (e *pickleEncoder) close() error {
	e.op('.')
	e.flush()
	return e.err
}

// flush writes a frame.
func (e *pickleEncoder) flush() {
	e.frame[0] = 0x95
	binary.LittleEndian.PutUint64(e.frame[1:], uint64(len(e.frame)-9))
	if e.err == nil {
		_, e.err = e.w.Write(e.frame)
	}
	e.frame = e.frame[:9]
}

func (e *pickleEncoder) op(b ...byte) { e.frame = append(e.frame, b...) }

// item is called before each item of a container.
func (e *pickleEncoder) item() {
	if len(e.frame) >= frameSize {
		e.flush()
	}
	if n := len(e.open); n > 0 && e.open[n-1].list {
		top := &e.open[n-1]
		if top.items == batchSize {
			e.op('e', '(')
			top.items = 0
		}
		top.items++
	}
}

func (e *pickleEncoder) beginDict() {
	e.item()
	e.op('}', '(')
	e.open = append(e.open, openPickle{})
}

func (e *pickleEncoder) endDict() {
	e.op('u')
	e.open = e.open[:len(e.open)-1]
}

func (e *pickleEncoder) beginList() {
	e.item()
	e.op(']', '(')
	e.open = append(e.open, openPickle{list: true})
}

func (e *pickleEncoder) endList() {
	e.op('e')
	e.open = e.open[:len(e.open)-1]
}

// use chooses the table that shared things are numbered in.
func (e *pickleEncoder) use(s *trace.Stacks) {
	if e.now = e.tables[s]; e.now == nil {
		e.now = &sharedMemo{}
		e.tables[s] = e.now
	}
}

func (e *pickleEncoder) beginShared(s shared) bool {
	e.item()
	memo := &e.now.frames
	if s.rec == recStack {
		memo = &e.now.stacks
	}
	if int(s.id) >= len(*memo) {
		*memo = append(*memo, make([]uint32, int(s.id)+1-len(*memo))...)
	}
	if n := (*memo)[s.id]; n > 0 {
		e.get(n - 1)
		return false
	}
	(*memo)[s.id] = e.memo + 1
	e.memo++
	if s.rec == recStack {
		e.op(']', 0x94, '(')
	} else {
		e.op('}', 0x94, '(')
	}
	e.open = append(e.open, openPickle{list: s.rec == recStack})
	return true
}

func (e *pickleEncoder) get(i uint32) {
	if i < 256 {
		e.op('h', byte(i))
	} else {
		e.frame = binary.LittleEndian.AppendUint32(append(e.frame, 'j'), i)
	}
}

func (e *pickleEncoder) key(name string) {
	if len(e.frame) >= frameSize {
		e.flush()
	}
	e.string(name)
}

func (e *pickleEncoder) text(s string) {
	e.item()
	e.string(s)
}

func (e *pickleEncoder) string(s string) {
	if i, ok := e.texts[s]; ok {
		e.get(i)
		return
	}
	switch n := uint64(len(s)); {
	case n < 256:
		e.op(0x8c, byte(n))
	case n <= math.MaxUint32:
		e.frame = binary.LittleEndian.AppendUint32(append(e.frame, 'X'), uint32(n))
	default:
		e.frame = binary.LittleEndian.AppendUint64(append(e.frame, 0x8d), n)
	}
	e.frame = append(e.frame, s...)
	e.op(0x94)
	e.texts[s] = e.memo
	e.memo++
}

func (e *pickleEncoder) int(n int64) {
	e.item()
	e.integer(n)
}

func (e *pickleEncoder) integer(n int64) {
	switch {
	case n >= 0 && n < 1<<8:
		e.op('K', byte(n))
	case n >= 0 && n < 1<<16:
		e.op('M', byte(n), byte(n>>8))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		e.frame = binary.LittleEndian.AppendUint32(append(e.frame, 'J'), uint32(n))
	default:
		size := 8
		for size > 1 && n<<(64-8*(size-1))>>(64-8*(size-1)) == n {
			size--
		}
		e.op(0x8a, byte(size))
		for i := range size {
			e.op(byte(n >> (8 * i)))
		}
	}
}

func (e *pickleEncoder) bool(x bool) {
	e.item()
	if x {
		e.op(0x88)
	} else {
		e.op(0x89)
	}
}

func (e *pickleEncoder) pair(first, second int64) {
	e.item()
	e.integer(first)
	e.integer(second)
	e.op(0x86)
}

func (e *pickleEncoder) other(v any) {
	e.item()
	switch v := v.(type) {
	case nil:
		e.op('N')
	case float64:
		e.frame = binary.BigEndian.AppendUint64(append(e.frame, 'G'), math.Float64bits(v))
	case uint64:
		e.big(new(big.Int).SetUint64(v))
	case *big.Int:
		e.big(v)
	default:
		if e.err == nil {
			e.err = fmt.Errorf("a field holds a %T, which no snapshot can", v)
		}
		e.op('N')
	}
}

// big writes an integer as little-endian bytes in two's complement.
func (e *pickleEncoder) big(n *big.Int) {
	size := n.BitLen()/8 + 1
	b := make([]byte, size)
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	n.FillBytes(b)
	slices.Reverse(b)
	if size < 256 {
		e.op(0x8a, byte(size))
	} else {
		e.frame = binary.LittleEndian.AppendUint32(append(e.frame, 0x8b), uint32(size))
	}
	e.op(b...)
}
