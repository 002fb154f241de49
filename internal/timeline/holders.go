package timeline

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/trace"
)

// Holder is a call stack and the active blocks it allocated that are there at
// the end.
type Holder struct {
	Stack  trace.StackID
	Bytes  uint64 // block sizes
	Blocks int
}

// Holders returns who holds the memory at the end, the largest first.
func Holders(t *trace.Trace) []Holder {
	at := map[trace.StackID]int{}
	var out []Holder
	for i := range t.Segments {
		for j := range t.Segments[i].Blocks {
			b := &t.Segments[i].Blocks[j]
			if b.State == alloc.Inactive {
				continue
			}
			id := b.Stack
			if id == trace.EmptyStack {
				id = trace.NoStack // nobody knows either way
			}
			k, ok := at[id]
			if !ok {
				k = len(out)
				at[id] = k
				out = append(out, Holder{Stack: id})
			}
			out[k].Bytes += b.Size
			out[k].Blocks++
		}
	}
	slices.SortStableFunc(out, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Stack, b.Stack))
	})
	return out
}
