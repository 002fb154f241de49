package eager

// Kernels of cuDNN: convolutions, batch norms and recurrent layers.

func convolve(r *running) { r.output(0) }

func convolveBackward(r *running) {
	g, x, w := r.in[0], r.in[1], r.in[2]
	_, _ = x, w
	for i := range 2 {
		r.output(i)
	}
	if r.wants(10, 2) { // the bias
		over := make([]bool, g.dims)
		for d := range over {
			over[d] = d != 1
		}
		r.output(2)
		r.reduce(g, over, wide(g.dtype))
	}
}

func batchNorm(r *running) { r.outputs() }

func batchNormBackward(r *running) { r.outputs() }

// Gates of the recurrent layers, by cuDNN's mode.
var reserved = [4]int64{1, 1, 5, 6}

// cell is what the sizes of a recurrent layer depend on.
type cell struct {
	mode, layers, directions, hidden int64
	steps                            int64 // of all sequences
	size                             int64 // bytes of an element
	dropout                          bool
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

// workspace is an upper estimate: a workspace of cuBLAS for each layer and
// direction, the gates of a layer, and its weights.
func (c cell) workspace(weights int64) int64 {
	unit := c.steps * c.hidden * c.directions * c.size
	return 8<<20*c.layers*c.directions + unit*reserved[c.mode] + 2*weights
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
		size: x.dtype.Size(), steps: x.Elements() / max(x.Size(-1), 1),
	}
	if p, is := r.Args[first+5].(float64); is {
		c.dropout = p > 0
	}
	return c, c.mode >= 0 && c.mode < 4
}

// recurrent is an LSTM, a GRU or a plain one: x, weights, how many of them a
// layer has, their buffer, the states, then mode, hidden, projected, layers,
// batch first, dropout, train, bidirectional.
func recurrent(r *running) {
	c, ok := r.cell()
	if !ok {
		return
	}
	r.output(0)
	r.output(1)
	r.output(2)
	r.output(4)
	var weights int64
	for _, t := range r.in[1:] {
		if t.dims == 2 {
			weights += t.Bytes()
		}
	}
	work := r.scratch(c.workspace(weights), r.Op)
	r.outputOf(3, c.reserve())
	r.unref(work)
}

func recurrentBackward(r *running) {
	c, ok := r.cell()
	if !ok {
		return
	}
	for i := range 3 {
		r.output(i)
	}
	bytes := c.workspace(0)
	r.Scratch(bytes, r.Op)
	r.outputs()
	r.Scratch(bytes, r.Op)
}

// dropoutState is cuDNN's random state, one for each thread that the card runs.
func dropoutState(r *running) {
	r.outputOf(0, r.Device.Multiprocessors*r.Device.ThreadsPerProc*24)
}
