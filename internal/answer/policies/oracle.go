package policies

import "github.com/ashlar-mem/ashlar/internal/policy/placement"

// unit is what requests are rounded to.
const unit = 512

// rounded returns the size of a live block.
func (c *course) rounded(size uint64) uint64 {
	if c.exact {
		return size
	}
	return (max(size, 1) + unit - 1) / unit * unit
}

// buffers returns the lifetimes of all tensors, from their allocation until their
// free is complete, in ops; and those of requests that failed in the recording.
func (c *course) buffers() []placement.Buffer {
	out := make([]placement.Buffer, c.tensors)
	waits := map[uint64][]int32{}
	for i := range c.ops {
		o := &c.ops[i]
		at := int64(i)
		switch o.kind {
		case opMalloc:
			out[o.tensor] = placement.Buffer{Lower: at, Upper: int64(len(c.ops)), Size: c.rounded(o.size)}
		case opTry:
			out = append(out, placement.Buffer{Lower: at, Upper: at + 1, Size: c.rounded(o.size)})
		case opFree:
			out[o.tensor].Upper = at
		case opFreeLater:
			waits[o.size] = append(waits[o.size], o.tensor)
		case opComplete:
			for _, t := range waits[o.size] {
				out[t].Upper = at
			}
			delete(waits, o.size)
		}
	}
	return out
}
