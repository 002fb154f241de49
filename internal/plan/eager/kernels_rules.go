package eager

// kernelRules are what kernels allocate besides outputs that come first and alone.
// An op without a rule allocates its outputs in order, and nothing else. They are
// no variable so that a program without a dry run does not carry them.
func kernelRules() map[string]func(*running) {
	return map[string]func(*running){
		"mm": matrices, "bmm": matrices, "baddbmm": matrices, "addbmm": matrices, "_grouped_mm": matrices, "dot": matrices, "mv": matrices, "addmv": matrices,
		"addmm": matrices, "_addmm_activation": matrices, "linear": matrices,

		"sum": sums, "mean": sums, "nansum": sums, "prod": sums, "linalg_vector_norm": sums, "norm": sums,
		"amax": extremes, "amin": extremes, "max": extremes, "min": extremes, "any": extremes, "all": extremes,
		"argmax": places, "argmin": places, "var": spreads, "std": spreads, "var_mean": spreads, "std_mean": spreads,
		"logsumexp": logSumExp, "count_nonzero": sums,

		"mse_loss": lossInPlace, "smooth_l1_loss": lossInPlace, "huber_loss": lossApart,
		"binary_cross_entropy_with_logits": crossEntropyLogits, "binary_cross_entropy": lossApart,
		"_softmax_backward_data": softmaxBackward, "_softmax": denseInput, "_log_softmax": denseInput,

		"native_layer_norm": layerNorm, "native_layer_norm_backward": layerNormBackward,
		"native_group_norm": groupNorm, "native_group_norm_backward": groupNormBackward,
		"cudnn_batch_norm": batchNorm, "cudnn_batch_norm_backward": batchNormBackward,

		"embedding": lookUp, "embedding_dense_backward": lookUpBackward,
		"index": indexed, "index_put": put, "index_put_": put, "_index_put_impl_": put, "_unsafe_index_put": put,
		"upsample_nearest2d": resampled, "_upsample_nearest_exact2d": resampled, "upsample_nearest2d_backward": resampled,
		"upsample_bilinear2d_backward": resampled, "upsample_bicubic2d_backward": resampled,
		"_upsample_bilinear2d_aa": resampledDense, "_upsample_bicubic2d_aa": resampledDense,
		"_upsample_bilinear2d_aa_backward": resampledDense, "_upsample_bicubic2d_aa_backward": resampledDense,
		"nonzero": nonzero, "sort": sorts, "topk": topk, "cumsum": cumulate, "cumprod": cumulate,

		"_scaled_dot_product_flash_attention": flashForward, "_scaled_dot_product_flash_attention_backward": flashBackward,
		"_scaled_dot_product_efficient_attention": efficientForward, "_scaled_dot_product_efficient_attention_backward": efficientBackward,
		"_scaled_dot_product_cudnn_attention": cudnnForward, "_scaled_dot_product_cudnn_attention_backward": cudnnBackward,
		"_native_multi_head_attention": multiHead, "_transformer_encoder_layer_fwd": encoderLayer,

		"convolution": convolve, "_convolution": convolve, "convolution_backward": convolveBackward,
		"_thnn_fused_gru_cell": fusedCell, "_thnn_fused_lstm_cell": fusedCell, "_pack_padded_sequence": packSequence,
		"_cudnn_rnn": recurrent, "_cudnn_rnn_backward": recurrentBackward, "_cudnn_init_dropout_state": dropoutState,

		"_foreach_norm": foreachNorm, "abs": magnitude, "isinf": finite, "native_dropout": dropout,
	}
}

// needs are the inputs that a rule looks at, each with the dimensions it has at
// least; a rule that is not listed looks at one, of any.
var needs = map[string][]int{
	"_softmax_backward_data": {0, 0}, "native_layer_norm_backward": {0, 0}, "native_group_norm_backward": {0, 0},
	"cudnn_batch_norm": {2}, "cudnn_batch_norm_backward": {2, 2},
	"embedding": {0, 0}, "embedding_dense_backward": {1, 0},

	"_scaled_dot_product_flash_attention":              {4, 4, 4},
	"_scaled_dot_product_flash_attention_backward":     {4, 4, 4, 4, 4},
	"_scaled_dot_product_efficient_attention":          {4, 4, 4},
	"_scaled_dot_product_efficient_attention_backward": {4, 4, 4, 4},
	"_scaled_dot_product_cudnn_attention":              {4, 4, 4},
	"_scaled_dot_product_cudnn_attention_backward":     {4, 4, 4, 4},
	"_native_multi_head_attention":                     {3},
	"_transformer_encoder_layer_fwd":                   {3, 2, 1, 2, 1, 1, 1, 1, 1, 2},

	"convolution": {3, 3}, "_convolution": {3, 3}, "convolution_backward": {3, 3, 3},
	"_cudnn_rnn": {1}, "_cudnn_rnn_backward": {1}, "_cudnn_init_dropout_state": {},
}

// matrices is a product; operands that lie neither by rows nor by columns are
// copied.
func matrices(r *running) {
	r.outputs()
	var copies []*storage
	for _, t := range r.in {
		if t.dims >= 2 && !r.asMatrix(t) {
			copies = append(copies, r.scratch(t.Bytes(), r.Op))
		}
	}
	defer func() {
		for i := len(copies) - 1; i >= 0; i-- {
			r.unref(copies[i])
		}
	}()
	if r.lt() {
		r.handleLt()
	} else {
		r.Handle()
	}
}

// asMatrix reports whether cuBLAS takes a matrix as it lies.
func (r *running) asMatrix(t *Tensor) bool {
	rows, cols := t.dim[t.dims-2], t.dim[t.dims-1]
	down, right := t.stride[t.dims-2], t.stride[t.dims-1]
	return right == 1 && (down >= max(cols, 1) || rows == 1) || down == 1 && (right >= max(rows, 1) || cols == 1) || rows == 1 && cols == 1
}

// lt reports whether the product adds a bias, which cuBLASLt does.
func (r *running) lt() bool {
	name, _ := r.name()
	switch name {
	case "addmm", "_addmm_activation":
		return r.in[0].dims == 1 && r.in[0].stride[0] == 1
	case "linear":
		return len(r.in) == 3
	}
	return false
}

func sums(r *running) {
	x := r.in[0]
	r.output(0)
	d := Int64
	if len(r.Out) > 0 && r.Out[0].Known {
		d = r.Out[0].DType
	}
	if x.dtype == Bool || !x.dtype.IsFloat() && d.IsFloat() {
		// Bools are counted, and whole numbers averaged, in a copy.
		c := r.Empty(r.Op, d, x.Shape()...)
		r.reduce(c, r.over(c), wide(d))
		c.Drop()
		return
	}
	r.reduce(x, r.over(x), wide(x.dtype))
}

// over are the dimensions of sum(x, dims), mean, vector_norm(x, ord, dims) and
// the like.
func (r *running) over(x *Tensor) []bool {
	name, _ := r.name()
	at := 1
	if name == "linalg_vector_norm" || name == "norm" {
		at = 2
	}
	if len(r.Out) > 0 && len(r.Out[0].Shape) == 0 {
		at = len(r.Args) // everything
	}
	return r.dims(at, x)
}

func extremes(r *running) {
	r.outputs()
	if len(r.Out) == 1 && len(r.in) == 1 {
		r.reduce(r.in[0], r.over(r.in[0]), r.Out[0].DType.Size())
	}
}

func places(r *running) {
	r.outputs()
	r.reduce(r.in[0], r.over(r.in[0]), 16)
}

func spreads(r *running) {
	r.outputs()
	r.reduce(r.in[0], r.over(r.in[0]), 16)
}

// logSumExp looks for the largest, and sums the exponentials of the differences.
func logSumExp(r *running) {
	x := r.in[0]
	y := r.output(0)
	if y == nil {
		return
	}
	out := r.Out[0].Bytes
	top := r.scratch(out, r.Op)
	r.Scratch(max(out/x.dtype.Size(), 1), r.Op) // which are infinite
	r.unref(top)
	all := r.scratch(x.Bytes(), r.Op)
	sum := r.scratch(out, r.Op)
	r.reduce(x, r.over(x), wide(x.dtype))
	r.unref(all)
	r.unref(sum)
}

// reduces reports whether a loss is averaged or summed.
func (r *running) reduces() bool {
	return len(r.Out) > 0 && len(r.Out[0].Shape) == 0 && r.in[0].Elements() > 1
}

// lossInPlace is a loss whose result is computed in what becomes the output: the
// scalar that comes out keeps the memory of all elements.
func lossInPlace(r *running) {
	x := r.in[0]
	if !r.reduces() {
		return
	}
	r.outputOf(0, x.Bytes())
	r.scratchFor(x.Bytes(), func() { r.reduceAll(x) })
}

// lossApart is a loss whose elements have memory of their own for a while.
func lossApart(r *running) {
	x := r.in[0]
	if !r.reduces() {
		return
	}
	r.scratchFor(x.Bytes(), func() {
		r.output(0)
		r.reduceAll(x)
	})
}

// crossEntropyLogits computes with two tensors of the size of its input.
func crossEntropyLogits(r *running) {
	x := r.in[0]
	if !r.reduces() {
		r.scratchFor(x.Bytes(), func() { r.output(0) })
		return
	}
	a := r.scratch(x.Bytes(), r.Op)
	r.scratchFor(x.Bytes(), func() {
		r.output(0)
		r.reduceAll(x)
	})
	r.unref(a)
}

// reduceAll is the scratch of a sum over all elements of something that lies as
// x does without gaps.
func (r *running) reduceAll(x *Tensor) {
	r.meet(r.Op, reduction{outputs: 1, inputs: x.Elements(), inner: true, size: x.dtype.Size(), arg: wide(x.dtype)})
}

func softmaxBackward(r *running) {
	r.output(0)
	p := r.binary("mul", r.in[0], r.in[1])
	if !p.IsContiguous() {
		r.Scratch(p.Bytes(), r.Op)
	}
	p.Drop()
}

// denseInput is an op that copies an input which is not contiguous.
func denseInput(r *running) {
	r.outputs()
	if x := r.in[0]; !x.IsContiguous() {
		r.Scratch(x.Bytes(), r.Op)
	}
}

func layerNorm(r *running) {
	c := r.contiguousCopy(r.in[0])
	r.outputs()
	c.Drop()
}

func layerNormBackward(r *running) {
	g, x := r.in[0], r.in[1]
	width := int64(1)
	for _, n := range r.numbers(2) {
		if width *= n; width < 1 || width > x.Elements() {
			return
		}
	}
	c := r.contiguousCopy(x)
	rows := x.Elements() / width
	slot := r.slots(7, 3)
	r.output(slot[0])
	parts := r.Device.layerNormParts(rows, width)
	var dense *Tensor
	if parts == 0 {
		r.outputs()
		dense = r.contiguousCopy(g)
	} else {
		// The sums of the parts replace what was allocated for the results.
		var first, sums [2]*storage
		for i := range first {
			if at := slot[i+1]; at >= 0 && r.Fresh[at] {
				first[i] = r.scratch(r.Out[at].Bytes, r.Op)
			}
		}
		dense = r.contiguousCopy(g)
		part := r.tensor(x.dtype, []int64{parts, width})
		part.stride = contiguous([]int64{parts, width})
		part.store = r.alloc(0, "")
		for i := range sums {
			if first[i] != nil {
				sums[i] = r.scratch(parts*width*x.dtype.Size(), r.Op)
			}
		}
		for i := range sums {
			if first[i] != nil {
				r.output(slot[i+1])
				r.reduce(part, []bool{true, false}, wide(x.dtype))
				r.unref(first[i])
			}
		}
		for i := 1; i >= 0; i-- {
			if sums[i] != nil {
				r.unref(sums[i])
			}
		}
	}
	Drop(dense, c)
}

// groupNorm keeps a factor and a shift for each channel of each image.
func groupNorm(r *running) {
	x := r.in[0]
	c := r.contiguousCopy(x)
	r.outputs()
	if x.dims > 2 {
		each := x.dim[0] * x.dim[1] * 4
		r.scratchFor(each, func() { r.Scratch(each, r.Op) })
	}
	c.Drop()
}

func groupNormBackward(r *running) {
	r.outputs()
	if x := r.in[1]; x.dims > 2 {
		each := x.dim[0] * x.dim[1] * 4
		r.scratchFor(each, func() {
			r.scratchFor(each, func() { r.Scratch(each, r.Op) })
		})
	}
}

func lookUp(r *running) {
	ids := r.contiguousCopy(r.in[1])
	r.output(0)
	ids.Drop()
}

func lookUpBackward(r *running) {
	if rows := r.number(2, 0); rows > 0 && len(r.Out) > 0 && r.Fresh[0] {
		r.becomes(0, r.embeddingGrad(r.in[0], r.in[1], rows))
	}
}

// indexed is x[i, j, ...]. Several indices that lie differently in memory are
// copied; a mask is turned into numbers.
func indexed(r *running) {
	var held []*storage
	shape := [MaxDims]int64{}
	count := 0
	same := true
	for _, t := range r.in[1:] {
		if t.dtype == Bool || t.dtype == UInt8 {
			n := int64(1)
			if len(r.Out) > 0 && len(r.Out[0].Shape) > 0 && t.Elements() > 0 {
				// What is selected, as the result tells.
				rest := r.in[0].Elements() / max(t.Elements(), 1)
				n = outElements(&r.Out[0]) / max(rest, 1)
			}
			held = append(held, r.masked(t, n))
			continue
		}
		if t.dtype == Int32 { // the kernel wants int64
			held = append(held, r.scratch(t.Elements()*8, r.Op))
		}
		count++
	}
	if count >= 2 {
		dims := broadcast(&shape, r.in[1:])
		total := int64(1)
		for _, d := range shape[:dims] {
			total *= d
		}
		first := r.in[1]
		for _, t := range r.in[1:] {
			same = same && t.dims == first.dims && t.dim == first.dim && t.stride == first.stride
		}
		if !same {
			for range count {
				held = append(held, r.scratch(total*8, r.Op))
			}
		}
	}
	r.output(0)
	for i := len(held) - 1; i >= 0; i-- {
		r.unref(held[i])
	}
}

// resampled copies its input into a dense form, unless the channels come last.
func resampled(r *running) {
	r.outputs()
	if x := r.in[0]; !r.lastFormat(x) {
		r.contiguousCopy(x).Drop()
	}
}

// resampledDense knows no channels that come last: they are copied to and fro.
func resampledDense(r *running) {
	r.outputs()
	x := r.in[0]
	if r.lastFormat(x) && len(r.Out) > 0 {
		r.scratchFor(r.Out[0].Bytes, func() { r.contiguousCopy(x).Drop() })
		return
	}
	r.contiguousCopy(x).Drop()
}

func outElements(m *Meta) int64 {
	n := int64(1)
	for _, d := range m.Shape {
		n *= d
	}
	return n
}

// masked is nonzero() of a mask that selects n: CUB counts first, then writes.
func (r *running) masked(t *Tensor, n int64) *storage {
	count := r.scratch(4, r.Op)
	r.Scratch(r.Device.countScratch(t.Elements()), r.Op)
	out := r.scratch(max(n, 1)*8*int64(max(t.dims, 1)), r.Op)
	r.Scratch(scanScratch, r.Op)
	r.unref(count)
	return out
}

// countScratch is CUB's buffer for counting: a number for each block, of which
// there are 40 for each multiprocessor.
func (d Device) countScratch(count int64) int64 {
	const oneBlock = 4096
	if count <= oneBlock {
		return 1
	}
	return cubBuffer(d.Multiprocessors * 40 * 4)
}

func nonzero(r *running) {
	x := r.in[0]
	count := r.scratch(4, r.Op)
	r.Scratch(r.Device.countScratch(x.Elements()), r.Op)
	r.output(0)
	r.Scratch(scanScratch, r.Op)
	r.unref(count)
}

// put is index_put; with accumulate the indices are sorted.
func put(r *running) {
	r.output(0)
	if len(r.in) < 3 || r.number(3, 0) == 0 {
		return
	}
	self, values := r.in[0], r.in[len(r.in)-1]
	index := r.in[1]
	if index.dtype == Bool {
		return
	}
	n := index.Elements()
	for range 2 { // are all within bounds?
		s := r.scratch(8, r.Op)
		r.reduceAll(index)
		r.Scratch(1, r.Op)
		r.unref(s)
	}
	r.addRows(n, self, values)
}

func sorts(r *running) {
	r.outputs()
	x := r.in[0]
	n := x.Elements()
	if x.dims == 0 || x.Size(-1) <= smallSort {
		return
	}
	r.scratchFor(n*8, func() { r.Scratch(radixScratch(n, x.dtype.Size()*8), r.Op) })
}

func topk(r *running) {
	r.outputs()
	if x := r.in[0]; !x.IsContiguous() {
		r.Scratch(x.Bytes(), r.Op)
	}
}

func cumulate(r *running) {
	r.output(0)
	x := r.in[0]
	c := r.contiguousCopy(x)
	if x.dims <= 1 || x.Elements() == x.Size(-1) {
		r.Scratch(scanScratch, r.Op)
	}
	c.Drop()
}

func foreachNorm(r *running) {
	if len(r.in) == 0 {
		return
	}
	var chunks int64
	for _, t := range r.in {
		chunks = max(chunks, ceil(t.Elements(), foreachChunk))
	}
	r.scratchFor(int64(len(r.in))*chunks*wide(r.in[0].dtype), r.outputs)
}

// magnitude of complex numbers is computed as complex numbers first.
func magnitude(r *running) {
	r.output(0)
	if x := r.in[0]; x.dtype == Complex64 {
		r.Scratch(x.Bytes(), r.Op)
	}
}

// finite is isinf, which looks at magnitudes.
func finite(r *running) {
	x := r.in[0]
	if !x.dtype.IsFloat() {
		return
	}
	r.scratchFor(x.Bytes(), r.outputs)
}

// dropout makes its mask first.
func dropout(r *running) {
	r.output(1)
	r.output(0)
}
