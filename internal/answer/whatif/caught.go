package whatif

import (
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Caught says that a failed request may not be the end of the program.
type Caught struct {
	By string // who catches the error
	// Restarts: the program would begin again with less, which its calls cannot
	// show. Otherwise it goes on without the request.
	Restarts bool
}

// catcher is code that catches out-of-memory errors and goes on with less.
type catcher struct {
	Caught
	functions []string // of Python, whole names
	native    []string // parts of names of compiled functions, in lower case
	files     []string // parts of paths
}

// catchers are libraries whose source was looked at.
var catchers = []catcher{
	{
		// PyTorch runs the algorithms of cuDNN one after the other until the
		// workspace of one can be had; in benchmark mode it halves the workspace.
		// Python shows no more than the layer, whose output is allocated under
		// the same frames. So it may be a workspace, no more than that.
		Caught:    Caught{"a convolution: cuDNN tries algorithms until there is room for one", false},
		functions: []string{"_conv_forward"},
		native:    []string{"cudnn", "convolution"},
	},
	{
		// Inductor takes a kernel that cannot be timed for infinitely slow.
		Caught: Caught{"torch.compile's search for the fastest kernel: one that fails is left out", false},
		functions: []string{
			"benchmark_choice", "benchmark_choices", "benchmark_choice_in_current_process", "benchmark_in_current_process",
		},
		files: []string{"torch/_inductor/autotune_process.py"},
	},
	{
		// accelerate halves the batch and starts again, as Transformers does with
		// auto_find_batch_size.
		Caught: Caught{"accelerate's search for a batch size", true},
		files:  []string{"accelerate/utils/memory.py"},
	},
	{
		Caught: Caught{"Lightning's search for a batch size", true},
		files:  []string{"/tuner/batch_size_scaling.py"},
	},
}

// LooksCaught reports whether the failure of a request with this stack may be
// caught, and by whom; nil if nothing says so. It goes by names, so it is a
// guess: not every request of such code is caught.
func LooksCaught(frames []timeline.Frame) *Caught {
	for _, f := range frames {
		for i := range catchers {
			if catchers[i].owns(f) {
				return &catchers[i].Caught
			}
		}
	}
	return nil
}

func (c *catcher) owns(f timeline.Frame) bool {
	if strings.HasSuffix(f.Filename, ".py") {
		return slices.Contains(c.functions, f.Name) || contains(f.Filename, c.files)
	}
	return contains(strings.ToLower(f.Name), c.native)
}

func contains(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// WasCaught reports whether the program went on after a request that failed in
// the recording: unwinding frees, but it does not allocate.
func WasCaught(t *trace.Trace, event int) *Caught {
	for i := event + 1; i < t.Events.Len(); i++ {
		if t.Events.Action.At(i) == alloc.ActionAlloc {
			return &Caught{"the recorded program, which went on allocating after this request had failed", false}
		}
	}
	return nil
}
