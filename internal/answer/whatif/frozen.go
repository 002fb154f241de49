package whatif

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/settings"
)

// Which parameters are frozen is in no recording, but gradients are: one has the size of its parameter, and so has most
// state of an optimizer. Parameters of a size are trained if a step makes as many gradients of that size, or if the
// optimizer has as much state for them as for others. The rest are frozen, or they are buffers and data that lie on the
// device from the start, or their gradients are sparse. libashlar.so names the first as cold and the others not, so
// both are replayed.

// leastFrozen is how many bytes of such parameters matter: less than a page does not move by itself.
var leastFrozen = settings.Default().LargeSegmentSize

// frozen reports which parameters may be without a gradient, and how many bytes these are; none if no step shows any
// gradient, as in inference. trains is whether there are gradients or an optimizer's state.
func (j *OverflowJob) frozen() (is func(tensor int) bool, bytes uint64, trains bool) {
	type born struct {
		step int
		size uint64
	}
	sizes := make([]uint64, j.Program.Tensors())
	parameters, state := map[uint64]int{}, map[uint64]int{}
	inStep, gradients := map[born]int{}, map[uint64]int{} // the second: of the step that makes most
	note := func(tensor int, c replay.Call) {
		sizes[tensor] = c.Size
		switch j.Category(tensor) {
		case findings.Parameters:
			parameters[c.Size]++
		case findings.OptimizerState:
			state[c.Size]++
		case findings.Gradients:
			step, _ := slices.BinarySearch(j.Begins, c.Event+1)
			at := born{step, c.Size}
			inStep[at]++
			gradients[c.Size] = max(gradients[c.Size], inStep[at])
		}
	}
	j.Program.EachFirst(note)
	for i := range j.Program.Len() {
		if c := j.Program.Call(i); c.Kind == replay.CallAlloc {
			note(c.Tensor, c)
		}
	}
	each := 0 // tensors of state that a trained parameter has of its size
	for size, n := range parameters {
		if gradients[size] >= n {
			each = max(each, state[size]/n)
		}
	}
	open := map[uint64]bool{}
	for size, n := range parameters {
		if len(gradients) > 0 && gradients[size] < n && (each == 0 || state[size] < each*n) {
			open[size] = true
			bytes += size * uint64(n)
		}
	}
	return func(tensor int) bool { return open[sizes[tensor]] && j.Category(tensor) == findings.Parameters }, bytes, len(gradients)+len(state) > 0
}
