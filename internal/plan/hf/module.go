package hf

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// Parameter is a weight of the model.
type Parameter struct {
	Name   string
	Tensor *eager.Tensor
	Tied   bool // the same weight is there under another name before
	// Packed is what stands in memory for a quantised weight, whose Tensor has
	// none.
	Packed []*eager.Tensor
}

// Elements is its number of elements.
func (p Parameter) Elements() int64 { return p.Tensor.Elements() }

// builder makes modules in the order of their constructors.
type builder struct {
	run    *run
	prefix string
}

// builders returns one for the model with its head and one for the model inside
// it; without a head they are the same.
func (r *run) builders(inside string) (top, base *builder) {
	top = &builder{run: r}
	if r.job.Model.Head == model.HeadNone {
		return top, top
	}
	return top, top.in(inside)
}

// in is a builder for a part of the module.
func (b *builder) in(name string) *builder {
	c := *b
	c.prefix = b.path(name)
	return &c
}

func (b *builder) path(name string) string {
	if b.prefix == "" {
		return name
	}
	return b.prefix + "." + name
}

// label is the name that the ledger has for a module.
func (b *builder) label(name string) ledger.Name { return b.run.machine.Ledger.Name(b.path(name)) }

// weight allocates a parameter of the model's type.
func (b *builder) weight(name string, shape ...int64) *eager.Tensor {
	return b.weightOf(b.run.dtype, name, shape...)
}

func (b *builder) weightOf(d eager.DType, name string, shape ...int64) *eager.Tensor {
	before := b.run.machine.Enter(b.label(name))
	t := b.run.parameter(d, b.run.trains, shape...)
	b.run.machine.Enter(before)
	b.run.params = append(b.run.params, Parameter{Name: b.path(name), Tensor: t})
	return t
}

// parameter makes a weight. Where ranks build only their parts it has no memory
// yet: newFSDP makes the parts.
func (r *run) parameter(d eager.DType, trains bool, shape ...int64) *eager.Tensor {
	if s := &r.job.Shard; s.BuildSharded && (s.FSDP > 0 || s.ZeroStage == 3) {
		return r.machine.MetaParameter(d, trains, shape...)
	}
	return r.machine.Parameter(d, trains, shape...)
}

// buffer allocates what a module keeps beside its parameters.
func (b *builder) buffer(d eager.DType, name string, shape ...int64) *eager.Tensor {
	before := b.run.machine.Enter(b.label(name))
	t := b.run.machine.Empty("buffer", d, shape...).SetKind(ledger.Buffer)
	b.run.buffers = append(b.run.buffers, t)
	b.run.machine.Enter(before)
	return t
}

// linear is nn.Linear, with the adapter that LoRA may have put around it.
type linear struct {
	name         string // the last part of its path
	label        ledger.Name
	weight, bias *eager.Tensor
	// columns is transformers' Conv1D: its weight is [in, out].
	columns bool
	adapter *adapter
	packed  *packed // the weight is quantised
}

// linear makes an nn.Linear.
func (b *builder) linear(name string, in, out int, bias bool) *linear {
	l := &linear{name: name, label: b.label(name)}
	c := b.in(name)
	if l.packed = c.packed(in, out); l.packed != nil {
		l.weight = l.packed.shape
	} else {
		l.weight = c.weight("weight", int64(out), int64(in))
	}
	if bias {
		l.bias = c.weight("bias", int64(out))
	}
	b.run.linears = append(b.run.linears, l)
	return l
}

// conv1D makes a Conv1D: an nn.Linear whose weight lies the other way round.
func (b *builder) conv1D(name string, in, out int) *linear {
	l := &linear{name: name, label: b.label(name), columns: true}
	c := b.in(name)
	if q := b.run.job.Quant; q != nil && q.TakesConv1D() {
		l.packed = c.packed(in, out)
	}
	if l.packed != nil {
		l.columns, l.weight = false, l.packed.shape
	} else {
		l.weight = c.weight("weight", int64(in), int64(out))
	}
	l.bias = c.weight("bias", int64(out))
	b.run.linears = append(b.run.linears, l)
	return l
}

func (l *linear) forward(r *run, x *eager.Tensor) *eager.Tensor {
	before := r.machine.Enter(l.label)
	defer r.machine.Enter(before)
	if l.adapter != nil {
		return l.adapter.forward(r, l, x)
	}
	return l.base(r, x)
}

// base is the module without its adapter.
func (l *linear) base(r *run, x *eager.Tensor) *eager.Tensor {
	switch {
	case l.packed != nil:
		return l.packed.forward(r, x, l.bias)
	case l.columns:
		return r.machine.Conv1D(x, l.weight, l.bias)
	}
	return r.machine.Linear(x, l.weight, l.bias)
}

// sizes is the number of inputs and outputs.
func (l *linear) sizes() (in, out int64) {
	if l.columns {
		return l.weight.Size(0), l.weight.Size(1)
	}
	return l.weight.Size(1), l.weight.Size(0)
}

// embedding is nn.Embedding.
type embedding struct {
	label  ledger.Name
	weight *eager.Tensor
	input  bool          // it is get_input_embeddings()
	scale  *eager.Tensor // gemma: what the rows are multiplied with
	times  bool          // granite: they are multiplied with a number
}

func (b *builder) embedding(name string, rows, width int) *embedding {
	e := &embedding{label: b.label(name), input: slices.Contains(inputEmbeddings, name)}
	// A later stage of a pipeline has the table only if its head is the table.
	if !e.input || !b.run.receives() || b.run.job.Model.Tied {
		e.weight = b.in(name).weight("weight", int64(rows), int64(width))
		b.run.tables = append(b.run.tables, e.weight)
	}
	return e
}

// inputEmbeddings are the names of the table of tokens in the families.
var inputEmbeddings = []string{"embed_tokens", "embed_in", "wte", "word_embeddings", "tok_embeddings", "shared"}

func (e *embedding) forward(r *run, ids *eager.Tensor) *eager.Tensor {
	before := r.machine.Enter(e.label)
	defer r.machine.Enter(before)
	if e.input && r.receives() {
		return r.machine.Received(r.dtype, ids.Size(0), ids.Size(1), int64(r.job.Model.Hidden))
	}
	y := r.machine.Embedding(e.weight, ids)
	if e.scale != nil {
		y = replace(y, r.machine.Mul(y, e.scale))
	}
	if r.inputGrad && e.input {
		r.machine.RequireGrad(y)
	}
	if e.times {
		y = replace(y, r.machine.Scale(y))
	}
	return y
}
