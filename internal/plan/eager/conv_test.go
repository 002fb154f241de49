package eager

import (
	"testing"

	"github.com/ashlar-mem/ashlar/internal/test/jsonl"
)

// convolution is one of patches as cuDNN 9.19 ran it on an H200: the workspaces
// it asked for.
type convolution struct {
	Batch, Height, Width, Patch, Out, Channels int64
	DType                                      string
	Forward, Backward                          int64
}

func readConvolutions(t *testing.T) []convolution {
	t.Helper()
	return jsonl.Must[convolution](t, "../../../testdata/plan/convolutions.jsonl.gz")
}

// cuDNN chooses kernels by rules that are not public. Those here must give
// the workspaces of nearly all convolutions in half types and of most in fp32,
// and be close for others.
func TestPatchWorkspaces(t *testing.T) {
	type score struct{ all, forward, backward, near int }
	scores := map[string]*score{"bf16": {}, "fp16": {}, "fp32": {}}
	for _, c := range readConvolutions(t) {
		m := New(H200)
		d := dtypes[c.DType]
		x := m.Empty("x", d, c.Batch, c.Channels, c.Height, c.Width)
		w := m.Empty("w", d, c.Out, c.Channels, c.Patch, c.Patch)
		y := m.Empty("y", d, c.Batch, c.Out, c.Height/c.Patch, c.Width/c.Patch)
		p := patchesOf(x, w, y)
		s := scores[c.DType]
		s.all++
		if p.forward() == c.Forward {
			s.forward++
		}
		got := p.backward()
		if got == c.Backward {
			s.backward++
		}
		if off := got - c.Backward; 100*max(off, -off) <= c.Backward {
			s.near++
		} else if testing.Verbose() {
			t.Logf("%+v: backward planned %d", c, got)
		}
	}
	// In percent.
	for name, least := range map[string]score{
		"bf16": {forward: 100, backward: 87, near: 98},
		"fp16": {forward: 99, backward: 81, near: 91},
		"fp32": {forward: 97, backward: 80, near: 88},
	} {
		s := scores[name]
		if s.all == 0 || 100*s.forward < least.forward*s.all || 100*s.backward < least.backward*s.all || 100*s.near < least.near*s.all {
			t.Errorf("%s: %+v", name, *s)
		}
	}
}
