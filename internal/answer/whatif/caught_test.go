package whatif

import (
	"strings"
	"testing"

	"github.com/ashlar-mem/ashlar/internal/timeline"
)

func TestLooksCaught(t *testing.T) {
	tests := []struct {
		frames []timeline.Frame
		want   string // part of who; empty for nobody
	}{
		{nil, ""},
		{[]timeline.Frame{{Name: "forward", Filename: "train.py"}}, ""},
		{[]timeline.Frame{{Name: "_conv_forward", Filename: "/x/torch/nn/modules/conv.py"}}, "cuDNN"},
		{[]timeline.Frame{{Name: "call", Filename: "a.py"}, {Name: "_conv_forward", Filename: "/x/torch/nn/modules/conv.py"}}, "cuDNN"},
		{[]timeline.Frame{{Name: "at::native::raw_cudnn_convolution_forward_out(at::Tensor const&)", Filename: "??"}}, "cuDNN"},
		{[]timeline.Frame{{Name: "at::_ops::convolution_backward::call(at::Tensor const&)", Filename: "RegisterCUDA.cpp"}}, "cuDNN"},
		// The user's own names mean nothing.
		{[]timeline.Frame{{Name: "train_convolution", Filename: "cudnn/train.py"}}, ""},
		{[]timeline.Frame{{Name: "benchmark", Filename: "bench.py"}}, ""},
		{[]timeline.Frame{{Name: "empty_strided", Filename: "a.py"}, {Name: "benchmark_choices", Filename: "/x/torch/_inductor/select_algorithm.py"}}, "torch.compile"},
		{[]timeline.Frame{{Name: "forward", Filename: "m.py"}, {Name: "decorator", Filename: "/x/site-packages/accelerate/utils/memory.py"}}, "accelerate"},
		{[]timeline.Frame{{Name: "forward", Filename: "m.py"}, {Name: "_run_power_scaling", Filename: "/x/pytorch_lightning/tuner/batch_size_scaling.py"}}, "Lightning"},
	}
	for _, tt := range tests {
		got := LooksCaught(tt.frames)
		if (got == nil) != (tt.want == "") || got != nil && (!strings.Contains(got.By, tt.want) || got.Restarts != (tt.want == "accelerate" || tt.want == "Lightning")) {
			t.Errorf("%+v: %+v, want %q", tt.frames, got, tt.want)
		}
	}
}

// A request that failed in the recording was caught if the program allocates
// afterwards.
func TestCaughtInTheRecording(t *testing.T) {
	p := program(t, "snapshots/unet_multires-tight-default.pickle.gz")
	last := p.Trace.Events.Len() - 1
	if c := WasCaught(p.Trace, last); c != nil {
		t.Errorf("%+v", c)
	}
	if c := WasCaught(p.Trace, last-2); c == nil || !strings.Contains(c.By, "the recorded program") {
		t.Errorf("%+v", c)
	}
	f := ask(t, p, question(p)).Results[0].First
	if !f.LooksCaught || f.CaughtBy == nil || *f.CaughtBy != f.Caught.By || *f.Step != 12 {
		t.Errorf("%+v", f)
	}
	more := open(t, "snapshots/unet_multires-tight-default.pickle.gz").Traces[0]
	more.Events.Append(more.Events.At(last - 1))
	q := checked(t, more)
	f = ask(t, q, Question{Limit: LimitOf(p)}).Results[0].First
	if !f.RecordedToo || *f.Event != last || !strings.Contains(f.Caught.By, "the recorded program") {
		t.Errorf("%+v", f)
	}
	f = ask(t, p, Question{Limit: GivenLimit(p, 1<<30)}).Results[0].First
	if f.RecordedToo || f.Site.Inner.Name == "" {
		t.Errorf("%+v", f)
	}
}
