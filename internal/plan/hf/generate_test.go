package hf_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/plan/hf"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
)

// generating is a job that generates, of the first small model of a type.
func generating(t *testing.T, modelType string) *model.Job {
	t.Helper()
	at := slices.IndexFunc(smallModels, func(s string) bool { return strings.Contains(s, `"`+modelType+`"`) })
	j := smallJob(t, smallModels[at])
	j.Mode, j.Tokens, j.TargetSeq = model.Generate, 5, 0
	return j
}

func planned(t *testing.T, j *model.Job) *ledger.Ledger {
	t.Helper()
	r, err := hf.Run(context.Background(), j)
	if err != nil {
		t.Fatalf("%s: %v", j.Model.ModelType, err)
	}
	return r.Ledger
}

// liveOf adds up what is there of a kind after an event.
func liveOf(l *ledger.Ledger, kind ledger.Kind, event int) (sum int64) {
	for i := range l.Tensors {
		if x := &l.Tensors[i]; x.Kind == kind && x.Live(event) {
			sum += x.Bytes
		}
	}
	return sum
}

// At the end of a loop the cache of t5 has the keys and values of the decoder's
// tokens, the one it begins with among them, and those of the prompt.
func TestT5Cache(t *testing.T) {
	j := generating(t, "t5")
	l := planned(t, j)
	width := int64(j.Model.Heads * j.Model.HeadDim)
	want := 2 * 2 * int64(j.Model.T5.DecoderLayers) * j.Batch * width * (j.Seq + j.Tokens + 1)
	if got := liveOf(l, ledger.Cache, len(l.Events)-1); got != want {
		t.Errorf("the cache has %d bytes, want %d", got, want)
	}
	// The keys of the prompt are made once: in a later step nothing is as long.
	from := l.Phases[len(l.Phases)-1].First
	for i := range l.Tensors {
		if x := &l.Tensors[i]; int(x.Birth) >= from && x.Bytes == 2*j.Batch*width*j.Seq {
			t.Errorf("the last token allocates %d bytes in %s", x.Bytes, l.Text(x.Module))
		}
	}
}

// generate() leaves nothing but the model, the workspaces and the prompt, and
// drops what a forward pass had before the next.
func TestGenerateCallLeavesNothing(t *testing.T) {
	for _, text := range smallModels {
		j := smallJob(t, text)
		if j.Model.Family == "bert" || j.Model.Family == "vit" {
			continue
		}
		j.Mode, j.Tokens, j.TargetSeq, j.GenerateCall = model.Generate, 4, 0, true
		for _, mask := range []model.Mask{model.NoMask, model.LeftMask} {
			j.Mask = mask
			l := planned(t, j)
			for _, kind := range []ledger.Kind{ledger.Cache, ledger.Loss, ledger.Temporary} {
				built := liveOf(l, kind, l.Scored()-1)
				if got := liveOf(l, kind, len(l.Events)-1); got != built {
					t.Errorf("%s, mask %s: %d bytes of %s are left", j.Model.ModelType, mask, got-built, kind)
				}
			}
			if got, want := liveOf(l, ledger.Input, len(l.Events)-1), 8*j.Batch*j.Seq; got != want {
				t.Errorf("%s, mask %s: %d bytes of inputs are left, want the prompt's %d", j.Model.ModelType, mask, got, want)
			}
		}
	}
}

// Under generate() every token of a mixture multiplies with copies of its
// experts' weights, and the copies for the second product meet those for the
// first. A loop around the model makes no copies.
func TestExpertsUnderGenerate(t *testing.T) {
	for _, call := range []bool{true, false} {
		j := generating(t, "mixtral")
		j.GenerateCall = call
		l := planned(t, j)
		m := j.Model
		each := 2 * int64(m.Hidden) * int64(m.MoE.Intermediate) * j.Batch * int64(m.MoE.TopK)
		meet := 0
		for i := range l.Tensors {
			down := &l.Tensors[i]
			if down.Bytes != each || l.Text(down.Op) != "index" || l.PhaseAt(int(down.Birth)).Name != ledger.Decode {
				continue
			}
			for k := range l.Tensors[:i] {
				if up := &l.Tensors[k]; up.Bytes == 2*each && l.Text(up.Op) == "index" && up.Live(int(down.Birth)) {
					meet++
				}
			}
		}
		want := 0
		if call { // the first token is the prompt's
			want = m.Layers * int(j.Tokens-1)
		}
		if meet != want {
			t.Errorf("generate() %v: copies meet %d times, want %d", call, meet, want)
		}
	}
}

// A batch with padding needs a mask for every token.
func TestLoopWithMask(t *testing.T) {
	j := generating(t, "llama")
	plain := planned(t, j)
	j.Mask = model.LeftMask
	masked := planned(t, j)
	count := func(l *ledger.Ledger) (n int) {
		for i := range l.Tensors {
			if x := &l.Tensors[i]; l.Text(x.Op) == "le" && l.PhaseAt(int(x.Birth)).Name == ledger.Decode {
				n++
			}
		}
		return n
	}
	if a, b := count(plain), count(masked); a != 0 || b != int(j.Tokens) {
		t.Errorf("%d masks without padding, %d with", a, b)
	}
}

func TestCannotGenerate(t *testing.T) {
	static := generating(t, "llama")
	static.GenerateCall, static.StaticCache = true, 128
	endless := generating(t, "llama")
	endless.Tokens = 1 << 40
	for _, c := range []struct {
		j    *model.Job
		want string
	}{
		{generating(t, "bert"), "does not generate text"},
		{generating(t, "vit"), "does not generate text"},
		{static, "static cache"},
		{endless, "more allocations than a plan holds"},
	} {
		if _, err := hf.Run(context.Background(), c.j); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.j.Model.ModelType, err, c.want)
		}
	}
}
