package replay

import "github.com/ashlar-mem/ashlar/alloc"

// Early returns the same program with some tensors allocated before everything
// else, in their order: what would have become of a program that makes the
// long-lived before the transient. Tensors of private pools, whose routes begin
// later, and those that are there before the first call stay where they are.
func (p *Program) Early(tensors map[int]bool) *Program {
	out := *p
	out.calls = make([]packed, 0, len(p.calls))
	out.events = make([]int32, 0, len(p.events))
	take := func(early bool) {
		for i, c := range p.calls {
			moves := c.kind() == CallAlloc && (i < p.early || tensors[int(c.tensor)] && p.places[c.at()].pool == (alloc.PoolID{}))
			if moves == early {
				out.calls = append(out.calls, c)
				out.events = append(out.events, p.events[i])
			}
		}
	}
	take(true)
	out.early = len(out.calls)
	take(false)
	return &out
}
