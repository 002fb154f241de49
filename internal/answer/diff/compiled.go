package diff

import (
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// PyTorch records the frames of compiled code only if asked to
// (stacks="all"). If one side has them and the other has not, no stack would be
// like another, so they are left out there. Stacks that are equal then are
// one.

// hasCompiled reports whether a file has stacks with frames of compiled code.
func (x *Table) hasCompiled(s *Side) bool {
	for _, id := range s.frames {
		if x.compiled(id) {
			return true
		}
	}
	return false
}

func (x *Table) compiled(id trace.FrameID) bool {
	f := x.trace.Stacks.Frame(id)
	return !placed(f.Line, x.trace.Strings.Text(f.File))
}

// withoutCompiled returns the holders of a side by their frames with lines.
func (x *Table) withoutCompiled(s *Side) []timeline.LiveHolder {
	var out []timeline.LiveHolder
	at := map[trace.StackID]int{}
	var rest []trace.FrameID
	for _, h := range s.holders {
		rest = rest[:0]
		for _, f := range x.trace.Stacks.Frames(h.Stack) {
			if !x.compiled(f) {
				rest = append(rest, f)
			}
		}
		h.Stack = trace.NoStack
		if len(rest) > 0 {
			h.Stack = x.trace.Stacks.Add(rest)
		}
		i, ok := at[h.Stack]
		if !ok {
			at[h.Stack] = len(out)
			out = append(out, h)
			continue
		}
		out[i].Size += h.Size
		out[i].Requested += h.Requested
		out[i].Blocks += h.Blocks
	}
	return out
}

// holders returns what is compared of two sides. note says what was left out.
func (x *Table) holders(a, b *Side) (ofA, ofB []timeline.LiveHolder, note string) {
	const left = ": frames of compiled code are left out, because the other side has none"
	switch inA, inB := x.hasCompiled(a), x.hasCompiled(b); {
	case a.source == b.source || inA == inB || len(a.frames) == 0 || len(b.frames) == 0:
		return a.holders, b.holders, ""
	case inA:
		return x.withoutCompiled(a), b.holders, "A" + left
	default:
		return a.holders, x.withoutCompiled(b), "B" + left
	}
}
