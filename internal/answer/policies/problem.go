package policies

import (
	"github.com/ashlar-mem/ashlar/internal/policy"
	"github.com/ashlar-mem/ashlar/internal/policy/placement"
)

// problemCourse returns the calls of a placement problem. Its sizes are bytes.
func problemCourse(p *placement.Problem) *course {
	c := &course{tensors: len(p.Buffers), exact: true, places: []policy.Place{{}}}
	for i, begins := range placement.Each(p.Buffers) {
		o := op{size: p.Buffers[i].Size, tensor: int32(i), kind: opMalloc}
		if !begins {
			o.kind = opFree
		}
		c.calls = append(c.calls, int32(len(c.ops)))
		c.ops = append(c.ops, o)
	}
	return c
}
