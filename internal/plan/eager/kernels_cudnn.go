package eager

import "slices"

// Kernels of cuDNN: convolutions, batch norms and recurrent layers.

// convolution is the call of one whose arguments after its tensors begin at
// first: stride, padding, dilation, transposed, output padding, groups.
func (r *running) convolution(x, w *Tensor, y []int64, first int) *Convolution {
	return &Convolution{
		X: x.Shape(), W: w.Shape(), Y: y, Type: x.dtype, ChannelsLast: r.lastFormat(x) || r.lastFormat(w), Transposed: r.number(first+3, 0) != 0,
		Stride: r.each(first, x), Padding: r.each(first+1, x), Dilation: r.each(first+2, x), Groups: max(r.number(first+5, 1), 1),
	}
}

// each is an argument with a number for each dimension of space.
func (r *running) each(i int, x *Tensor) []int64 {
	list := r.numbers(i)
	for len(list) > 0 && len(list) < int(x.dims)-2 {
		list = append(list, list[0])
	}
	if len(list) == 0 {
		list = make([]int64, x.dims-2)
	}
	return list
}

// lastFormat reports whether the channels of images come last in memory, and
// not because there is but one or a single pixel.
func (r *running) lastFormat(t *Tensor) bool {
	if t.dims < 4 || t.IsContiguous() {
		return false
	}
	step := t.dim[1]
	if t.dim[1] > 1 && t.stride[1] != 1 {
		return false
	}
	for d := int(t.dims) - 1; d >= 2; d-- {
		if t.dim[d] > 1 && t.stride[d] != step {
			return false
		}
		step *= t.dim[d]
	}
	return true
}

// formatted copies a tensor that does not lie as a convolution wants it.
func (r *running) formatted(last bool, t *Tensor) (done func()) {
	if t == nil || last && (t.dims < 4 || r.lastFormat(t) || t.IsContiguous() && (t.dim[1] == 1 || t.Elements() == t.dim[0]*t.dim[1])) || !last && t.IsContiguous() {
		return func() {}
	}
	s := r.scratch(t.Bytes(), r.Op)
	return func() { r.unref(s) }
}

// convSpace takes the workspace of a pass. What cuDNN says of it is true if it
// knew the GPU. If it was only told of one it leaves out the kernels of cuBLAS,
// which it prefers where there is nothing but a matrix product to do.
func (r *running) convSpace(c *Convolution, p convPass, asked int) {
	bytes, sure := c.space(p)
	if asked < len(r.Workspaces) && r.Workspaces[asked] >= 0 && !c.Native() {
		switch {
		case r.OnGPU:
			bytes, sure = r.Workspaces[asked], true
		case !sure && (product(c.W[2:]) > 1 || c.Groups > 1):
			bytes = r.Workspaces[asked]
		}
	}
	if !sure {
		r.kernels.guessed = max(r.kernels.guessed, bytes)
	}
	r.Scratch(bytes, r.Op)
}

func convolve(r *running) {
	if len(r.Out) == 0 {
		return
	}
	x, w := r.in[0], r.in[1]
	c := r.convolution(x, w, r.Out[0].Shape, 3)
	if !c.valid() {
		return
	}
	input := r.formatted(c.ChannelsLast, x)
	r.output(0)
	weight := r.formatted(c.ChannelsLast, w)
	r.convSpace(c, forwardPass, 0)
	weight()
	input()
}

func convolveBackward(r *running) {
	g, x, w := r.in[0], r.in[1], r.in[2]
	c := r.convolution(x, w, g.Shape(), 4)
	if !c.valid() {
		return
	}
	slot := r.slots(10, 3)
	var copies []func()
	if slot[1] >= 0 {
		copies = append(copies, r.formatted(c.ChannelsLast, x))
	}
	again := g // what each pass copies for itself
	if c.ChannelsLast {
		copies, again = append(copies, r.formatted(true, g)), nil
	}
	if slot[0] >= 0 {
		r.output(slot[0])
		weight, grad := r.formatted(c.ChannelsLast, w), r.formatted(false, again)
		r.convSpace(c, inputPass, 0)
		grad()
		weight()
	}
	if slot[1] >= 0 {
		grad := r.formatted(false, again)
		r.output(slot[1])
		r.convSpace(c, weightPass, 1)
		grad()
	}
	for _, free := range slices.Backward(copies) {
		free()
	}
	if slot[2] >= 0 { // the bias
		over := make([]bool, g.dims)
		for d := range over {
			over[d] = d != 1
		}
		r.output(slot[2])
		r.reduce(g, over, wide(g.dtype))
	}
}

// valid reports whether a convolution can be one: a ledger may say anything.
func (c *Convolution) valid() bool {
	n := len(c.X) - 2
	if n < 1 || n > 3 || len(c.W) != n+2 || len(c.Y) != n+2 || len(c.Stride) != n || len(c.Padding) != n || len(c.Dilation) != n {
		return false
	}
	for _, s := range [][]int64{c.X, c.W, c.Y, c.Stride, c.Dilation} {
		for _, d := range s {
			if d < 1 {
				return false
			}
		}
	}
	return true
}

func batchNorm(r *running) {
	r.outputs()
	x := r.in[0]
	r.Scratch(batchNormSpace(x.Shape(), r.lastFormat(x), x.dtype, false), r.Op)
}

func batchNormBackward(r *running) {
	x := r.in[0]
	done := r.formatted(r.lastFormat(x), r.in[1])
	r.outputs()
	r.Scratch(batchNormSpace(x.Shape(), r.lastFormat(x), x.dtype, true), r.Op)
	done()
}

// Gates of the recurrent layers, by cuDNN's mode.
var reserved = [4]int64{1, 1, 5, 6}

// cell is what the sizes of a recurrent layer depend on.
type cell struct {
	mode, layers, directions, hidden int64
	steps                            int64 // of all sequences
	size                             int64 // bytes of an element
	dropout, batchFirst, train       bool
}

// reserve is what the backward pass needs: the gates of every layer, what goes
// from layer to layer, and a bit for each number that dropout leaves out.
func (c cell) reserve() int64 {
	unit := c.steps * c.hidden * c.directions
	bytes := unit*c.size*(reserved[c.mode]*c.layers+c.layers-1) + 256
	if c.dropout && c.layers > 1 {
		bytes += (c.layers-1)*unit/8 + 256
	}
	return bytes
}

// Units of a layer's results that a workspace has, by cuDNN's mode, and with two
// directions.
var (
	worked     = [4]int64{3, 3, 5, 4}
	workedBoth = [4]int64{3, 3, 6, 4}
)

// workspace is about what cuDNN takes: a workspace of cuBLAS for each layer and
// direction, the weights, gates of a layer and its input. How it is made up is
// not public; of 70 layers that were measured it is within a third for those
// with wide states.
func (c cell) workspace(weights, input int64) int64 {
	units := worked[c.mode]
	if c.directions == 2 {
		units = workedBoth[c.mode]
	}
	const padding = 256 // small states are filled up
	return 8<<20*c.layers*c.directions + c.steps*(c.hidden*units+padding)*c.directions*c.size + weights + 2*input*c.directions
}

// matrixBytes is the size of all inputs that are matrices: the weights.
func (r *running) matrixBytes() (bytes int64) {
	for _, t := range r.in[1:] {
		if t.dims == 2 {
			bytes += t.Bytes()
		}
	}
	return bytes
}

func (r *running) cell() (c cell, ok bool) {
	first := -1
	for i, a := range r.Args {
		if n, is := a.(float64); is && i > 2 && n <= 3 {
			first = i
			break
		}
	}
	if first < 0 || first+8 >= len(r.Args) {
		return c, false
	}
	x := r.in[0]
	c = cell{
		mode: r.number(first, 0), hidden: r.number(first+1, 1), layers: r.number(first+3, 1), directions: 1 + r.number(first+7, 0),
		size: x.dtype.Size(), steps: x.Elements() / max(x.Size(-1), 1), batchFirst: r.number(first+4, 0) != 0, train: r.number(first+6, 0) != 0,
	}
	if p, is := r.Args[first+5].(float64); is {
		c.dropout = p > 0
	}
	return c, c.mode >= 0 && c.mode < 4 && c.reserve() > 0
}

// cellSpace is the workspace and the reserve of a recurrent layer: what cuDNN
// said, or about that.
func (r *running) cellSpace(c cell) (work, reserve int64) {
	if len(r.Workspaces) == 2 && r.OnGPU && min(r.Workspaces[0], r.Workspaces[1]) >= 0 {
		return r.Workspaces[0], r.Workspaces[1]
	}
	work, reserve = c.workspace(r.matrixBytes(), r.in[0].Bytes()), c.reserve()
	r.kernels.guessed = max(r.kernels.guessed, work)
	return work, reserve
}

// recurrent is an LSTM, a GRU or a plain one: x, weights, how many of them a
// layer has, their buffer, the states, then mode, hidden, projected, layers,
// batch first, dropout, train, bidirectional.
func recurrent(r *running) {
	c, ok := r.cell()
	if !ok {
		return
	}
	// cuDNN wants the steps before the batch.
	var turned *storage
	if c.batchFirst {
		turned = r.scratch(r.in[0].Bytes(), r.Op)
	}
	for _, i := range []int{0, 1, 2, 4} {
		r.output(i)
	}
	bytes, reserve := r.cellSpace(c)
	work := r.scratch(bytes, r.Op)
	if c.train {
		r.outputOf(3, reserve)
	}
	r.unref(work)
	if turned != nil {
		r.unref(turned)
	}
}

func recurrentBackward(r *running) {
	c, ok := r.cell()
	if !ok {
		return
	}
	turn := func(bytes int64) *storage {
		if c.batchFirst {
			return r.scratch(bytes, r.Op)
		}
		return r.alloc(0, r.Op)
	}
	x := turn(r.in[0].Bytes())
	g := turn(c.steps * c.hidden * c.directions * c.size)
	bytes, _ := r.cellSpace(c)
	states := 2
	if c.mode == 2 { // an LSTM has two
		states = 3
	}
	for i := range states {
		r.output(i)
	}
	r.Scratch(bytes, r.Op)
	r.unref(g)
	r.unref(x)
	x = turn(r.in[0].Bytes())
	r.outputs()
	r.Scratch(bytes, r.Op)
	r.unref(x)
}

// fusedCell is a step of a GRU or an LSTM in PyTorch's own kernel, which makes
// what it keeps for the backward pass first.
func fusedCell(r *running) {
	r.output(len(r.Out) - 1)
	r.outputs()
}

// packSequence copies the steps that have the same sequences left, piece by
// piece, and puts the pieces together. How many there are is not known here.
func packSequence(r *running) {
	if len(r.Out) > 0 {
		r.scratchFor(r.Out[0].Bytes, r.outputs)
	}
}

// dropoutState is cuDNN's random state, one for each thread that the card runs.
func dropoutState(r *running) {
	r.outputOf(0, r.Device.Multiprocessors*r.Device.ThreadsPerProc*24)
}
