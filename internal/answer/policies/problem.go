package policies

import (
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/policy/placement"
)

// problemCourse returns the calls of a placement problem. Its sizes are bytes.
func problemCourse(p *placement.Problem) *course {
	c := &course{tensors: len(p.Buffers), exact: true, places: []policy.Place{{}}}
	placement.Each(p.Buffers, func(i int, begins bool) {
		o := op{size: p.Buffers[i].Size, tensor: int32(i), kind: opMalloc}
		if !begins {
			o.kind = opFree
		}
		c.ops, c.calls = append(c.ops, o), append(c.calls, int32(len(c.ops)))
	})
	for i := range c.calls {
		c.calls[i] = int32(i)
	}
	return c
}
