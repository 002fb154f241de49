package hf

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/safetensors"
)

// packed is the quantised weight of a Linear. docs/quantised.md says where each
// rule comes from.
type packed struct {
	quant   *model.Quant
	shape   *eager.Tensor // the weight that it stands for, without memory
	in, out int64
	op      eager.PackedWeight
}

// packed makes the weight of the module that the builder is in, nil if it is not
// quantised.
func (b *builder) packed(in, out int) *packed {
	q := b.run.job.Quant
	if !q.Converts(b.prefix) {
		return nil
	}
	p := &packed{quant: q, in: int64(in), out: int64(out)}
	tensors := q.Files[b.prefix]
	if tensors == nil {
		tensors = q.Tensors(p.in, p.out)
	}
	p.shape = b.stored("weight", tensors, p.out, p.in)
	p.op = p.function(b.run)
	return p
}

// stored allocates what stands for a weight of a shape. Weights that the
// checkpoint has unquantised are on the GPU as they are for a moment.
func (b *builder) stored(name string, tensors []safetensors.Tensor, shape ...int64) *eager.Tensor {
	r, m := b.run, b.run.machine
	before := m.Enter(b.label(name))
	defer m.Enter(before)
	var source, half *eager.Tensor
	if q := r.job.Quant; !q.Stored {
		source = m.Empty("load", r.source(), shape...)
		if q.Method == model.Int8 && r.source() != eager.Float16 {
			half = m.Empty("to", eager.Float16, shape...)
		}
	}
	kind := m.Kind(ledger.Weight)
	var list []*eager.Tensor
	for _, t := range tensors {
		list = append(list, m.Empty(t.Name, bytesType(t), t.Shape...))
	}
	m.Kind(kind)
	eager.Drop(half, source)
	t := m.MetaParameter(r.dtype, false, shape...)
	r.params = append(r.params, Parameter{Name: b.path(name), Tensor: t, Packed: list})
	return t
}

// source is the type of the weights before they were quantised.
func (r *run) source() eager.DType { return dtypeOf(r.job.Quant.Source) }

// bytesType is a type of as many bytes as the elements of a file's tensor have.
func bytesType(t safetensors.Tensor) eager.DType {
	switch n := max(t.Elements(), 1); t.Bytes / n {
	case 2:
		return eager.Float16
	case 4:
		return eager.Int32
	case 8:
		return eager.Int64
	}
	return eager.UInt8
}

// forward is the module's.
func (p *packed) forward(r *run, x, bias *eager.Tensor) *eager.Tensor {
	m, d := r.machine, x.DType()
	if c := p.quant.Compute; c != "" {
		d = dtypeOf(c)
	}
	if p.quant.Method == model.GPTQ && r.trains {
		return p.saved(r, x, bias)
	}
	in := m.To(x, d)
	b := bias
	if bias != nil {
		b = m.To(bias, d)
	}
	y := m.PackedLinear(in, b, &p.op)
	if bias != nil {
		b.Drop()
	}
	in.Drop()
	out := m.To(y, x.DType())
	y.Drop()
	return out
}

// function is the autograd.Function of the method.
func (p *packed) function(r *run) eager.PackedWeight {
	switch p.quant.Method {
	case model.Int8:
		return eager.PackedWeight{Name: "MatMul8bitLt", KeepsInput: true, Forward: p.int8(r), Back: p.back(r, p.int8Weight)}
	case model.AWQ:
		if r.trains {
			return eager.PackedWeight{Name: "AwqGemmFn", SavesInput: true, Forward: p.dequantised(r, p.awqWeight), Back: p.awqBack(r)}
		}
		return eager.PackedWeight{Name: "marlin", Forward: p.fused(r)}
	case model.GPTQ:
		return eager.PackedWeight{Name: "marlin", Forward: p.fused(r)}
	case model.FP8:
		return eager.PackedWeight{Name: "fp8_linear", Forward: p.eightBit(r)}
	}
	return eager.PackedWeight{Name: "MatMul4Bit", Forward: p.fourBit(r), Back: p.back(r, p.fourBitWeight)}
}

// fused is a kernel that multiplies with the packed weight.
func (p *packed) fused(r *run) func(x, bias *eager.Tensor) *eager.Tensor {
	return func(x, _ *eager.Tensor) *eager.Tensor { return p.result(r, "packed_mm", x, x.DType()) }
}

// result allocates the product of x and the weight.
func (p *packed) result(r *run, op string, x *eager.Tensor, d eager.DType) *eager.Tensor {
	shape := append([]int64(nil), x.Shape()...)
	shape[len(shape)-1] = p.out
	return r.machine.Empty(op, d, shape...)
}

// dequantised multiplies with a weight that is made for it.
func (p *packed) dequantised(r *run, weight func(r *run, d eager.DType) *eager.Tensor) func(x, bias *eager.Tensor) *eager.Tensor {
	return func(x, bias *eager.Tensor) *eager.Tensor {
		w := weight(r, x.DType())
		y := r.machine.Linear(x, w, bias)
		w.Drop()
		return y
	}
}

// back is the gradient of the input: that of the output times the weight, which
// is dequantised again.
func (p *packed) back(r *run, weight func(r *run, d eager.DType) *eager.Tensor) func(g *eager.Tensor, in []int64) *eager.Tensor {
	return func(g *eager.Tensor, in []int64) *eager.Tensor {
		w := weight(r, g.DType())
		y := r.machine.Empty("mm", g.DType(), in...)
		r.machine.Handle()
		w.Drop()
		return y
	}
}

// uncertain notes, once, that the peak may be lower by some bytes.
func (r *run) uncertain(name string, less int64) {
	l := r.machine.Ledger
	for i := range l.Uncertain {
		if t := &l.Uncertain[i]; t.Name == name {
			t.Low = max(t.Low, less)
			return
		}
	}
	l.Uncertain = append(l.Uncertain, ledger.Term{Name: name, Low: less})
}

// onPacked is PEFT's forward pass around a quantised Linear. Around bitsandbytes'
// autocast finds the types, and the result of four bits is copied first.
func (a *adapter) onPacked(r *run, l *linear, base, x *eager.Tensor) *eager.Tensor {
	m := r.machine
	in, out := a.a.DType(), base.DType()
	switch l.packed.quant.Method {
	case model.NF4, model.FP4:
		base = replace(base, m.Clone(base))
		fallthrough
	case model.Int8:
		if r.job.Autocast {
			in, out = x.DType(), eager.BFloat16
		}
	}
	scaled := a.scaled(r, m.To(x, in))
	added := m.To(scaled, out)
	scaled.Drop()
	y := m.Add(base, added)
	eager.Drop(base, added)
	return y
}

// dequantises replaces the quantisation of a job that the card cannot run by
// what transformers does then.
func dequantises(j *model.Job) (*model.Job, []string) {
	q := j.Quant
	switch {
	case q == nil:
		return j, nil
	case q.Method == model.FP8 && j.Capability > 0 && j.Capability < 89:
		c := *j
		c.Quant = nil
		return &c, []string{fmt.Sprintf("fp8 needs compute capability 8.9, and the card has %d.%d: transformers dequantises the weights to %s as it loads them", j.Capability/10, j.Capability%10, j.DType)}
	case q.Method == model.Compressed:
		c := *j
		c.Quant = nil
		return &c, []string{"compressed-tensors: transformers dequantises the weights in the first forward pass, and keeps them so"}
	}
	return j, nil
}
