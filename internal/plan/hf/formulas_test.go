package hf_test

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/test/plancompare"
)

// most is the highest sum of the live tensors of some kinds within a phase of
// the last step.
func most(l *ledger.Ledger, phase string, kinds ...ledger.Kind) int64 {
	var high int64
	var live int64
	wanted := map[ledger.Kind]bool{}
	for _, k := range kinds {
		wanted[k] = true
	}
	from, purposes := l.Scored(), l.Purposes()
	for i, e := range l.Events {
		in := i >= from && l.PhaseAt(i).Name == phase
		if in {
			high = max(high, live)
		}
		t := max(e, ^e)
		if wanted[purposes[t]] {
			if e >= 0 {
				live += l.Tensors[t].Bytes
			} else {
				live -= l.Tensors[t].Bytes
			}
		}
		if in {
			high = max(high, live)
		}
	}
	return high
}

func fp32(j *model.Job) { j.DType, j.Attention = model.FP32, model.SDPA }

// Bytes of a parameter (4.1): weights, gradients, state, and what the step takes
// for a moment.
func TestBytesPerParameter(t *testing.T) {
	const scalar = 4 // of a step counter
	for _, tt := range []struct {
		name                          string
		change                        func(*model.Job)
		weight, gradient, state, temp int64 // bytes of a parameter
		master                        int64
		counters                      bool // a counter on the GPU for each tensor
	}{
		{"fp32, AdamW foreach", func(j *model.Job) { fp32(j); j.Optimizer = model.AdamWForeach }, 4, 4, 8, 4, 0, false},
		{"fp32, AdamW fused", fp32, 4, 4, 8, 0, 0, true},
		{"bf16, AdamW fused", nil, 2, 2, 4, 0, 0, true},
		{"bf16, AdamW foreach", func(j *model.Job) { j.Optimizer = model.AdamWForeach }, 2, 2, 4, 2, 0, false},
		{"autocast", func(j *model.Job) { j.DType, j.Autocast = model.FP32, true }, 4, 4, 8, 0, 0, true},
		{"fp32, SGD with momentum", func(j *model.Job) { fp32(j); j.Optimizer = model.SGDMomentum }, 4, 4, 4, 0, 0, false},
		{"bf16, SGD", func(j *model.Job) { j.Optimizer = model.SGD }, 2, 2, 0, 0, 0, false},
		// Gradients are cast one by one: beside the casts the last one is there.
		{"fp32 copies of bf16 weights", func(j *model.Job) { j.Master = true }, 2, 4, 8, 0, 4, true},
	} {
		r := runJob(t, formulaJob(t, decoderConfig("llama", `,"tie_word_embeddings":false`), 4, tt.change))
		l, p := r.Ledger, r.Count()
		counters, cast := int64(0), int64(0)
		if tt.counters {
			counters = scalar * int64(len(r.Parameters))
		}
		if tt.master > 0 {
			cast = 2 * fV * fH
		}
		for _, x := range []struct {
			what      string
			got, want int64
		}{
			{"weights", most(l, ledger.Step, ledger.Weight), tt.weight * p},
			{"gradients", most(l, ledger.Step, ledger.Gradient), tt.gradient*p + cast},
			{"state", most(l, ledger.Step, ledger.Optimizer), tt.state*p + counters},
			{"master weights", most(l, ledger.Step, ledger.Master), tt.master * p},
			{"temporary", most(l, ledger.Step, ledger.Temporary), tt.temp * p},
		} {
			if x.got != x.want {
				t.Errorf("%s: %s %d bytes, %.4f a parameter; want %d", tt.name, x.what, x.got, float64(x.got)/float64(p), x.want)
			}
		}
	}
}

// What logits, their casts and their gradients take (4.3). Beside them there are
// the labels, twice while they are shifted, and a few scalars.
func TestLossFormula(t *testing.T) {
	const nv, labels, scalars = fN * fV, 8 * fN, 32
	for _, tt := range []struct {
		name                    string
		change                  func(*model.Job)
		forward, kept, backward int64 // bytes of a logit
	}{
		{"bf16", nil, 10, 4, 12},
		// Those of the step before are still there.
		{"bf16, the logits are held", func(j *model.Job) { j.HoldOutput = true }, 12, 6, 14},
		{"fp32", fp32, 8, 4, 12},
	} {
		l := runJob(t, formulaJob(t, decoderConfig("llama", `,"tie_word_embeddings":false`), 2, tt.change)).Ledger
		var kept int64
		for i := range l.Tensors {
			if x := &l.Tensors[i]; x.Kind == ledger.Loss && x.Live(phaseEnd(l, ledger.LossPhase)) {
				kept += x.Bytes
			}
		}
		for _, x := range []struct {
			what              string
			got, logit, small int64
		}{
			{"forward", most(l, ledger.LossPhase, ledger.Loss), tt.forward, 2*labels + scalars},
			{"kept", kept, tt.kept, labels + scalars},
			{"backward", most(l, ledger.Backward, ledger.Loss), tt.backward, labels + scalars},
		} {
			if beside := x.got - x.logit*nv; beside < 0 || beside > x.small+8 {
				t.Errorf("%s, %s: %d bytes, %.4f a logit; want %d and at most %d beside", tt.name, x.what, x.got, float64(x.got)/nv, x.logit, x.small)
			}
		}
	}
}

// Peaks by the formulas of 4.4 and 4.6, for cases of section 8: what is there
// throughout, and what one layer takes for a moment.
func TestPeakFormulas(t *testing.T) {
	cases, err := plancompare.MeasuredIn(plancompare.FirstCases)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range cases {
		c := &cases[i]
		j, err := c.Job()
		if err != nil {
			t.Fatal(err)
		}
		m := j.Model
		rows, h, w, layers := c.Spec.B*c.Spec.S, int64(m.Hidden), int64(m.Intermediate), int64(m.Layers)
		q, kv := int64(m.Heads*m.HeadDim), int64(m.KVHeads*m.HeadDim)
		// One layer that was computed again, and its MLP going backwards.
		layer := rows*(16*h+8*w+4*q+4*kv+4*int64(m.Heads)+8) + 4*rows*w + 2*rows*h + 2*h*w
		// Token ids, positions, cosines and sines.
		tables := 8*rows + 8*c.Spec.S + 2*2*c.Spec.S*int64(m.HeadDim)
		head := int64(m.Vocab) * h
		var want int64
		switch c.Name {
		case "06": // full recompute; the last layer goes backwards
			want = 6*c.Params + 64<<20 + layers*2*rows*h + layer + 2*head + tables
		case "14": // full recompute; the first layer goes backwards, and the gradients of the others are there
			behind := c.Params - head - (2*h*q + 2*h*kv + 3*h*w + 2*h)
			want = 6*c.Params + 64<<20 + 2*rows*h + layer + 2*behind + tables
		case "23": // a prompt
			want = 2*c.Params + layers*2*2*rows*kv + 32<<20 + 6*rows*w + 8*rows*h + tables + 8*c.Spec.S
		default:
			continue
		}
		n++
		l := runJob(t, j).Ledger
		// What is left: counters of the optimizer, frequencies, the loss.
		if got, _ := plancompare.Peak(l, l.Scored(), len(l.Events)); got < want || got > want+16<<10 {
			t.Errorf("%s: the peak is %d, the formula says %d: %+d", c.Name, got, want, got-want)
		}
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}

// What Adafactor keeps of a matrix is a row and a column, and what LoRA trains of
// a Linear is its rank times its sides.
func TestSmallState(t *testing.T) {
	config := decoderConfig("llama", `,"tie_word_embeddings":false`)
	r := runJob(t, formulaJob(t, config, 4, func(j *model.Job) { fp32(j); j.Optimizer = model.Adafactor }))
	var want int64
	for _, p := range r.Parameters {
		if shape := p.Tensor.Shape(); len(shape) == 2 {
			want += 4 * (shape[0] + shape[1])
		} else {
			want += 4 * p.Elements()
		}
	}
	if got := most(r.Ledger, ledger.Step, ledger.Optimizer); got != want {
		t.Errorf("Adafactor keeps %d bytes, want %d", got, want)
	}
	const rank, layers = 16, 4
	sides := int64(2*(fH+fQ*fD) + 2*(fH+fKV*fD) + 3*(fH+fI))
	r = runJob(t, formulaJob(t, config, layers, func(j *model.Job) { j.LoRA.Rank = rank }))
	if got, want := most(r.Ledger, ledger.Step, ledger.Gradient), 2*rank*layers*sides; got != want {
		t.Errorf("LoRA has gradients of %d bytes, want %d", got, want)
	}
}
