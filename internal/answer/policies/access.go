package policies

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/run"
)

// Access is a use of recorded memory.
type Access struct {
	Event int    `json:"event"`
	Addr  uint64 `json:"addr"`
	Bytes uint64 `json:"bytes"`
	Write bool   `json:"write"`

	line   int
	op     int32 // that it comes after
	tensor int32
	offset uint64
}

// What no recording has more of: bytes of a line, and lines, of a pipe that never ends.
const (
	maxAccess   = 1 << 16
	maxAccesses = 1 << 26
)

// ReadAccesses reads JSON lines of accesses, in the order of their events, and finds
// the blocks that they are in. The error names the line.
func ReadAccesses(r io.Reader, of *run.Checked) ([]Access, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxAccess)
	var all []Access
	line := 1
	for ; lines.Scan(); line++ {
		text := strings.TrimSpace(lines.Text())
		if line > maxAccesses {
			return nil, fmt.Errorf("more than %d lines", maxAccesses)
		}
		if len(text) == 0 {
			continue
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		a := Access{line: line}
		if err := dec.Decode(&a); err != nil || dec.InputOffset() != int64(len(text)) {
			if err == nil {
				err = errors.New("more than one object")
			}
			return nil, fmt.Errorf(`line %d: %w; write {"event": 12, "addr": 140234, "bytes": 4096, "write": true}`, line, err)
		}
		if n := len(all); n > 0 && a.Event < all[n-1].Event {
			return nil, fmt.Errorf("line %d is at event %d, the one before at %d: sort them by event", line, a.Event, all[n-1].Event)
		}
		all = append(all, a)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: it is longer than %d KiB", line, maxAccess>>10)
	} else if err != nil {
		return nil, fmt.Errorf("line %d: %w", line, err)
	}
	return all, locate(all, of)
}

// locate finds the tensor of each access.
func locate(all []Access, of *run.Checked) error {
	p := of.Program
	c := newCourse(p, nil)
	at := make([]located, p.Tensors())
	tensor := int32(0)
	for _, s := range p.Start.Segments {
		for _, b := range s.Blocks {
			at[tensor] = located{b.Address, b.Size, tensor}
			tensor++
		}
	}
	started := at[:tensor]
	for op := range c.ops {
		if o := &c.ops[op]; o.kind == opMalloc && c.event(op) >= 0 {
			at[o.tensor] = located{of.Trace.Events.Addr.At(c.event(op)), c.rounded(o.size), o.tensor}
		}
	}
	live := newLiveBlocks(at)
	for _, b := range started {
		live.add(b)
	}
	op := 0
	for i := range all {
		a := &all[i]
		for ; op < len(c.ops) && c.event(op) <= a.Event; op++ {
			switch o := &c.ops[op]; {
			case o.kind == opMalloc && c.event(op) >= 0:
				live.add(at[o.tensor])
			case o.kind == opFree || o.kind == opFreeLater:
				live.remove(at[o.tensor])
			}
		}
		b, found := live.before(a.Addr)
		if !found || a.Addr+a.Bytes > b.addr+b.size || a.Addr+a.Bytes < a.Addr {
			return fmt.Errorf("line %d: no block that is live at event %d holds %d bytes at %d", a.line, a.Event, a.Bytes, a.Addr)
		}
		a.op, a.tensor, a.offset = int32(op-1), b.tensor, a.Addr-b.addr
	}
	return nil
}

// located is a block by its recorded address.
type located struct {
	addr, size uint64
	tensor     int32
}

// liveBlocks are those of a recording that are live, in the order of their addresses.
type liveBlocks struct {
	addrs  []uint64   // that any block of the recording has
	blocks []located  // that was live last, of each of them
	levels [][]uint64 // a bit for each that is live; above, for each word that is not 0
}

func newLiveBlocks(all []located) *liveBlocks {
	l := &liveBlocks{addrs: make([]uint64, len(all))}
	for i, b := range all {
		l.addrs[i] = b.addr
	}
	slices.Sort(l.addrs)
	l.addrs = slices.Compact(l.addrs)
	l.blocks = make([]located, len(l.addrs))
	for n := len(l.addrs); n > 1 || len(l.levels) == 0; {
		n = (n + 63) / 64
		l.levels = append(l.levels, make([]uint64, n))
	}
	return l
}

// add is of a block that newLiveBlocks got; it takes the place of one that is live at its address.
func (l *liveBlocks) add(b located) {
	i, _ := slices.BinarySearch(l.addrs, b.addr)
	l.blocks[i] = b
	for _, words := range l.levels {
		words[i/64] |= 1 << (i % 64)
		i /= 64
	}
}

// remove does nothing if another block has taken the place.
func (l *liveBlocks) remove(b located) {
	i, _ := slices.BinarySearch(l.addrs, b.addr)
	if l.blocks[i].tensor != b.tensor {
		return
	}
	for _, words := range l.levels {
		if words[i/64] &^= 1 << (i % 64); words[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// before returns the live block with the highest address that is not above the given one.
func (l *liveBlocks) before(addr uint64) (located, bool) {
	i, found := slices.BinarySearch(l.addrs, addr)
	if !found {
		i--
	}
	for level := 0; i >= 0 && level < len(l.levels); level++ {
		if word := l.levels[level][i/64] & (2<<(i%64) - 1); word != 0 {
			i = i/64*64 + bits.Len64(word) - 1
			for ; level > 0; level-- {
				i = i*64 + bits.Len64(l.levels[level-1][i]) - 1
			}
			return l.blocks[i], true
		}
		i = i/64 - 1
	}
	return located{}, false
}
