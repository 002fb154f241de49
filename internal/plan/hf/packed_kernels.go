package hf

import "github.com/ashlar-mem/ashlar/internal/plan/eager"

// The kernel of bitsandbytes that multiplies with packed weights is taken for up
// to fusedRows rows on every card, and for none with more than mostFused. Between
// them the card and the shape decide; the plan dequantises.
const (
	fusedRows = 4
	mostFused = 1536
)

// fourBit is gemm_4bit.
func (p *packed) fourBit(r *run) func(x, bias *eager.Tensor) *eager.Tensor {
	return func(x, bias *eager.Tensor) *eager.Tensor {
		m := r.machine
		rows := x.Elements() / p.in
		aligned := p.in%64 == 0
		if rows <= fusedRows && aligned {
			return p.result(r, "gemm_4bit", x, x.DType())
		}
		if rows <= mostFused && aligned {
			r.uncertain("bitsandbytes' kernel for packed weights, where the card prefers it", p.in*p.out*x.DType().Size())
		}
		var scales, shifted *eager.Tensor
		if p.quant.Double {
			scales = m.Empty("dequantize_blockwise", eager.Float32, p.blocks())
			shifted = m.Empty("add", eager.Float32, p.blocks())
		}
		w := m.Empty("dequantize_4bit", x.DType(), p.out, p.in)
		y := m.Linear(x, w, bias)
		eager.Drop(shifted, scales, w)
		return y
	}
}

func (p *packed) blocks() int64 { return (p.in*p.out + 63) / 64 }

// fourBitWeight is dequantize_4bit, in the type that the weight had.
func (p *packed) fourBitWeight(r *run, d eager.DType) *eager.Tensor {
	m := r.machine
	var scales *eager.Tensor
	if p.quant.Double {
		scales = m.Empty("dequantize_blockwise", eager.Float32, p.blocks())
	}
	w := m.Empty("dequantize_4bit", r.source(), p.out, p.in)
	scales.Drop()
	return replace(w, m.To(w, d))
}

// int8 is MatMul8bitLt without columns of outliers, which depend on the numbers.
func (p *packed) int8(r *run) func(x, bias *eager.Tensor) *eager.Tensor {
	return func(x, _ *eager.Tensor) *eager.Tensor {
		m := r.machine
		rows := x.Elements() / p.in
		half := m.To(x, eager.Float16)
		stats := m.Empty("row_stats", eager.Float32, rows)
		quantised := m.Empty("int8_vectorwise_quant", eager.UInt8, rows, p.in)
		if p.quant.Outliers {
			size := m.Empty("abs", eager.Float16, rows, p.in)
			outliers := m.Empty("ge", eager.Bool, rows, p.in)
			size.Drop()
			m.Empty("any", eager.Bool).Drop()
			outliers.Drop()
		}
		half.Drop()
		sums := p.result(r, "int8_linear_matmul", x, eager.Int32)
		y := p.result(r, "int8_mm_dequant", x, eager.Float16)
		out := m.To(y, x.DType())
		eager.Drop(y, sums, quantised, stats)
		return out
	}
}

// int8Weight is the weight in the type of the input.
func (p *packed) int8Weight(r *run, d eager.DType) *eager.Tensor {
	m := r.machine
	w := m.Empty("to", d, p.out, p.in)
	m.Empty("mul", eager.Float32, p.out, 1).Drop()
	return w
}

// awqWeight is awq_dequantize_weights.
func (p *packed) awqWeight(r *run, d eager.DType) *eager.Tensor {
	w := r.machine.Empty("awq_dequantize", eager.Float16, p.out, p.in)
	return replace(w, r.machine.To(w, d))
}

// awqBack multiplies with a copy of the weight for each sequence.
func (p *packed) awqBack(r *run) func(g *eager.Tensor, in []int64) *eager.Tensor {
	return func(g *eager.Tensor, in []int64) *eager.Tensor {
		m := r.machine
		w := p.awqWeight(r, g.DType())
		copies := m.Empty("repeat", g.DType(), g.Size(0), p.out, p.in)
		y := m.Empty("bmm", g.DType(), in...)
		m.Handle()
		eager.Drop(copies, w)
		return y
	}
}

// saved is gptqmodel's Torch kernel, the one that trains: autograd keeps the
// dequantised weight until the backward pass.
func (p *packed) saved(r *run, x, bias *eager.Tensor) *eager.Tensor {
	m := r.machine
	w := m.Empty("dequantize_weight", eager.Float16, p.out, p.in)
	w = replace(w, m.To(w, x.DType()))
	y := m.Linear(x, w, bias)
	w.Drop()
	return y
}

// eightBit is fp8_linear: the input is quantised in blocks of a row.
func (p *packed) eightBit(r *run) func(x, bias *eager.Tensor) *eager.Tensor {
	return func(x, _ *eager.Tensor) *eager.Tensor {
		in, scales := r.quantiseInput(x)
		y := p.result(r, "fp8_matmul", x, x.DType())
		eager.Drop(in, scales)
		return y
	}
}

// quantiseInput is act_quant: one byte an element, and a scale for each block of
// a row.
func (r *run) quantiseInput(x *eager.Tensor) (quantised, scales *eager.Tensor) {
	width := x.Size(-1)
	block := int64(r.job.Quant.Block[1])
	if block == 0 {
		block = width
	}
	quantised = r.machine.Empty("act_quant", eager.UInt8, x.Shape()...)
	return quantised, r.machine.Empty("act_scales", eager.Float32, x.Elements()/width, (width+block-1)/block)
}
