package eager

// The attention kernels, as dispatched ops.

func flashForward(r *running) {
	q, k := r.in[0], r.in[1]
	r.output(0)
	r.output(1)
	heads, rows := q.dim[1], q.dim[2]
	var a, b *storage
	if s := r.Device.flashSplits(q.dim[0]*heads, rows, k.dim[2], q.dim[3]); s > 1 && r.number(3, 0) == 0 {
		each := s * q.dim[0] * heads * rows * 4
		a = r.scratch(each, r.Op)
		b = r.scratch(each*flashWidth(q.dim[3]), r.Op)
	}
	r.outputs()
	if a != nil {
		r.unref(a)
		r.unref(b)
	}
}

func flashBackward(r *running) {
	g, q, k, y := r.in[0], r.in[1], r.in[2], r.in[4]
	g2, y2 := r.rowsFirst(g), r.rowsFirst(y)
	r.outputs()
	b, h, d := q.dim[0], q.dim[1], q.dim[3]
	rows := ceil(q.dim[2], 128) * 128
	sums := r.scratch(b*h*rows*4, r.Op)
	acc := r.scratch(b*h*rows*flashWidth(d)*4, r.Op)
	if k.dim[1] != h {
		each := b * k.dim[2] * h * d * k.dtype.Size()
		r.scratchFor(each, func() { r.Scratch(each, r.Op) })
	}
	r.unref(acc)
	r.unref(sums)
	Drop(y2, g2)
}

func efficientForward(r *running) {
	q, v := r.in[0], r.in[2]
	r.outputs()
	if width := v.dim[3]; max(width, q.dim[3]) > 128 && q.dtype != Float32 {
		r.Scratch(q.dim[0]*q.dim[2]*q.dim[1]*width*4, r.Op)
	}
}

func efficientBackward(r *running) {
	g, q, k, v := r.in[0], r.in[1], r.in[2], r.in[3]
	g2 := r.rowsFirst(g)
	r.outputs()
	dropout := false
	for _, a := range r.Args {
		if p, ok := a.(float64); ok && p > 0 {
			dropout = true
			break
		}
	}
	delta := r.efficientDelta(r.Op, q.dtype, q.dim[0], q.dim[1], q.dim[2], v.dim[3])
	work := r.scratch(r.Device.efficientScratch(q, v, k.dim[2], dropout), r.Op)
	delta.Drop()
	r.unref(work)
	g2.Drop()
}

func cudnnForward(r *running) {
	q, k, v := r.in[0], r.in[1], r.in[2]
	// The random state comes first.
	for i := len(r.Out) - 1; i >= 1; i-- {
		if r.Out[i].Bytes <= 16 {
			r.output(i)
		}
	}
	r.outputs()
	r.Scratch(r.Device.cudnnScratch(q, k, v), r.Op)
}

func cudnnBackward(r *running) {
	g, q, k, v := r.in[0], r.in[1], r.in[2], r.in[3]
	r.outputs()
	var copied *storage
	if g.stride[3] != 1 {
		copied = r.scratch(g.Bytes(), r.Op)
	}
	b, h, rows, keys := q.dim[0], q.dim[1], q.dim[2], k.dim[2]
	bytes := b*h*rows*q.dim[3]*4 + b*h*rows*4 + cudnnAlign
	if k.dim[1] != h {
		bytes += b * h * keys * (k.dim[3] + v.dim[3]) * k.dtype.Size()
	}
	r.Scratch(bytes, r.Op)
	if copied != nil {
		r.unref(copied)
	}
}

// multiHead is what nn.MultiheadAttention becomes in evaluation without gradients.
func multiHead(r *running) {
	q := r.in[0]
	weights := r.number(10, 1) != 0
	masked := len(r.in) > 7
	r.attend(q, r.number(4, 1), weights || masked, weights, func() { r.output(0) })
}

// attend projects x to queries, keys and values, attends, and projects the result,
// for which project allocates. A fused kernel is used if there is neither a mask
// nor anybody who wants the weights, and if x lies by rows; else scores has all
// products of queries and keys.
func (r *running) attend(x *Tensor, heads int64, scores, weights bool, project func()) {
	n, rows, width := x.dim[0], x.dim[1], x.dim[2]
	all := x.Bytes()
	if !scores && x.stride[2] == 1 && heads > 0 {
		r.scratchFor(3*all, func() {
			r.handleLt()
			y := r.scratch(all, r.Op)
			if x.dtype != Float32 {
				r.Scratch(n*heads*rows*4, r.Op) // the logarithms of the sums
			}
			project()
			r.unref(y)
		})
		return
	}
	packed := r.scratch(n*rows*3*width*x.dtype.Size(), r.Op)
	r.Handle()
	parts := r.scratch(3*all, r.Op)
	r.unref(packed)
	products := r.scratch(n*max(heads, 1)*rows*rows*x.dtype.Size(), r.Op)
	if !weights {
		r.unref(products)
	}
	r.scratchFor(all, func() {
		project()
		r.handleLt()
	})
	if weights {
		r.output(1)
		r.unref(products)
	}
	r.unref(parts)
}

// encoderLayer is what nn.TransformerEncoderLayer becomes in evaluation without
// gradients.
func encoderLayer(r *running) {
	x, inner := r.in[0], r.in[9]
	first := r.number(8, 0) != 0
	all, size := x.Bytes(), x.dtype.Size()
	norm := func() *storage {
		y := r.scratch(all, r.Op)
		rows := x.dim[0] * x.dim[1] * 4
		r.scratchFor(rows, func() { r.Scratch(rows, r.Op) })
		return y
	}
	var before, attended *storage
	if first {
		before = norm()
	}
	r.attend(x, r.number(2, 1), len(r.in) > 13, false, func() { attended = r.scratch(all, r.Op) })
	if first {
		r.unref(before)
		before = norm()
	} else {
		before = norm()
		r.unref(attended)
		attended = nil
	}
	wide := r.scratch(x.dim[0]*x.dim[1]*inner.dim[0]*size, r.Op)
	r.handleLt()
	if first {
		r.output(0)
		r.unref(wide)
		r.unref(before)
		r.unref(attended)
		return
	}
	y := r.scratch(all, r.Op)
	r.unref(wide)
	r.output(0)
	r.unref(y)
	r.unref(before)
}
