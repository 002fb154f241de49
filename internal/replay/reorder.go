package replay

import "github.com/ashlar-mem/ashlar/alloc"

// LongLived returns the tensors that the program allocates and that are still
// there when it comes to the given event, and their bytes. Those of private pools
// are left out, as [Program.Early] does.
func (p *Program) LongLived(until int) (tensors map[int]bool, bytes uint64) {
	tensors = map[int]bool{}
	sizes := map[int]uint64{}
	for i := range p.calls {
		c := p.Call(i)
		if c.Event >= until {
			break
		}
		switch c.Kind {
		case CallAlloc:
			if c.Pool == (alloc.PoolID{}) {
				tensors[c.Tensor], sizes[c.Tensor] = true, c.Size
				bytes += c.Size
			}
		case CallFree, CallFreeLater:
			if tensors[c.Tensor] {
				bytes -= sizes[c.Tensor]
				delete(tensors, c.Tensor)
			}
		}
	}
	return tensors, bytes
}

// Resized returns the same program with other sizes of its requests: size gets
// a call that allocates, or that tried to.
func (p *Program) Resized(size func(Call) uint64) *Program {
	return p.Rebuild(len(p.calls), func(add func(Call)) {
		for i := range p.calls {
			c := p.Call(i)
			if c.Kind == CallAlloc || c.Kind == CallTry {
				c.Size = size(c)
			}
			add(c)
		}
	})
}
