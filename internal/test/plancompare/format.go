package plancompare

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// A file is gzip around a line with a magic word, a line of JSON (header) and
// four columns of varints: what each event is, the bytes of each birth, the
// ops and the frames of each event. In the first column 0 is a birth and n a
// death of the n-th last tensor born. Columns, because each of them repeats
// itself layer by layer and step by step, which gzip then finds.
const magic = "ashlar plan recording 1\n"

type header struct {
	Case
	Events  int      `json:"events"`
	Births  int      `json:"births"`
	Phases  []mark   `json:"phases"`
	Streams []int32  `json:"streams,omitempty"` // tensor, stream, tensor, stream ...
	Ops     []string `json:"ops"`
	Frames  []string `json:"frames"`
	Stacks  [][]int  `json:"stacks"` // of frames
}

type mark struct {
	Name  string `json:"name"`
	Step  int    `json:"step,omitempty"`
	First int    `json:"first"`
}

// maxEvents bounds what a broken header can make the reader allocate.
const maxEvents = 1 << 24

// Read reads a recording as [Run.Write] wrote it.
func Read(r io.Reader) (*Run, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(z)
	if line, err := in.ReadString('\n'); err != nil || line != magic {
		return nil, errors.New("not a recording of a run")
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if h.Events < 0 || h.Events > maxEvents || h.Births < 0 || h.Births > h.Events {
		return nil, fmt.Errorf("header: %d events, %d births", h.Events, h.Births)
	}
	var cols [4][]uint64
	for i := range cols {
		n := h.Events
		if i == 1 {
			n = h.Births
		}
		if cols[i], err = column(in, n); err != nil {
			return nil, fmt.Errorf("column %d: %w", i, err)
		}
	}
	// Reading on to the end has gzip check what was read.
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file is cut off or goes on after its columns")
	}
	return h.run(cols)
}

func column(in io.ByteReader, n int) ([]uint64, error) {
	out := make([]uint64, n)
	for i := range out {
		x, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// run builds the recording.
func (h *header) run(cols [4][]uint64) (*Run, error) {
	l := ledger.New()
	r := &Run{Case: h.Case, Ledger: l}
	ops, stacks := make([]ledger.Name, len(h.Ops)), make([]ledger.Name, len(h.Stacks))
	for i, s := range h.Ops {
		ops[i] = l.Name(s)
	}
	for i, stack := range h.Stacks {
		var text []byte
		for j, f := range stack {
			if f < 0 || f >= len(h.Frames) {
				return nil, fmt.Errorf("stack %d names frame %d of %d", i, f, len(h.Frames))
			}
			if j > 0 {
				text = append(text, ' ')
			}
			text = append(text, h.Frames[f]...)
		}
		stacks[i] = l.Name(string(text))
	}
	r.FreedBy, r.FreedAt = make([]ledger.Name, h.Births), make([]ledger.Name, h.Births)
	phases := h.Phases
	for i, what := range cols[0] {
		for len(phases) > 0 && phases[0].First <= i {
			l.Begin(phases[0].Name, phases[0].Step)
			phases = phases[1:]
		}
		op, stack := cols[2][i], cols[3][i]
		if op >= uint64(len(ops)) || stack >= uint64(len(stacks)) {
			return nil, fmt.Errorf("event %d names op %d and stack %d", i, op, stack)
		}
		born := len(l.Tensors)
		if what == 0 {
			if born == h.Births {
				return nil, fmt.Errorf("more than %d births", h.Births)
			}
			l.Alloc(ledger.Tensor{Bytes: int64(cols[1][born]), Op: ops[op], Module: stacks[stack]})
			continue
		}
		if what > uint64(born) {
			return nil, fmt.Errorf("event %d is a death before birth", i)
		}
		t := int32(born - int(what))
		if l.Tensors[t].Death != ledger.Lives {
			return nil, fmt.Errorf("event %d is a second death of tensor %d", i, t)
		}
		r.FreedBy[t], r.FreedAt[t] = ops[op], stacks[stack]
		l.Free(t)
	}
	for i := 0; i+1 < len(h.Streams); i += 2 {
		t, s := h.Streams[i], h.Streams[i+1]
		if t < 0 || int(t) >= len(l.Tensors) || s < 0 || s > 255 {
			return nil, fmt.Errorf("stream %d of tensor %d", s, t)
		}
		l.Tensors[t].Stream = uint8(s)
	}
	return r, nil
}

// Write writes a recording.
func (r *Run) Write(w io.Writer) error {
	l := r.Ledger
	h := header{Case: r.Case, Events: len(l.Events), Births: len(l.Tensors)}
	for _, p := range l.Phases {
		h.Phases = append(h.Phases, mark(p))
	}
	var ops, stacks table[ledger.Name]
	var frames table[string]
	var cols [4][]byte
	put := func(c int, x int) { cols[c] = binary.AppendUvarint(cols[c], uint64(x)) }
	born := 0
	for _, e := range l.Events {
		t, what, op, stack := e, 0, ledger.Name(0), ledger.Name(0)
		if e >= 0 {
			born++
			op, stack = l.Tensors[t].Op, l.Tensors[t].Module
			put(1, int(l.Tensors[t].Bytes))
			if s := l.Tensors[t].Stream; s != 0 {
				h.Streams = append(h.Streams, t, int32(s))
			}
		} else {
			t = ^e
			what, op, stack = born-int(t), r.FreedBy[t], r.FreedAt[t]
		}
		put(0, what)
		put(2, ops.id(op))
		put(3, stacks.id(stack))
	}
	for _, n := range ops.list {
		h.Ops = append(h.Ops, l.Text(n))
	}
	for _, n := range stacks.list {
		stack := []int{}
		for _, f := range fields(l.Text(n)) {
			stack = append(stack, frames.id(f))
		}
		h.Stacks = append(h.Stacks, stack)
	}
	h.Frames = frames.list
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(magic), append(head, '\n'), cols[0], cols[1], cols[2], cols[3]} {
		if _, err := z.Write(part); err != nil {
			return err
		}
	}
	return z.Close()
}

// table numbers values in the order of their first use.
type table[T comparable] struct {
	list  []T
	index map[T]int
}

func (t *table[T]) id(x T) int {
	if i, ok := t.index[x]; ok {
		return i
	}
	if t.index == nil {
		t.index = map[T]int{}
	}
	t.index[x] = len(t.list)
	t.list = append(t.list, x)
	return len(t.list) - 1
}
