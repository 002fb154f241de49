package findings

import (
	"path"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// frameMark is what a frame alone shows of where the program is.
type frameMark uint16

const (
	markModule       frameMark = 1 << iota // calls an nn.Module
	markOptimizer                          // inside an optimizer of torch
	markBackward                           // inside the backward pass
	markApply                              // torch.autograd.Function.apply: backward if it is outermost
	markMove                               // moves the parameters of an nn.Module
	markWorkspace                          // a library asks for its workspace
	markUser                               // the user's own program
	markForeign                            // Python, but not PyTorch's
	markAnyOptimizer                       // what all optimizers have in common
)

// stackKind says what part of a program a stack belongs to.
type stackKind uint8

const (
	stackPlain     stackKind = iota // the program, whatever it does
	stackModule                     // inside an nn.Module
	stackBackward                   // inside the backward pass
	stackRecompute                  // an nn.Module run again inside the backward pass
	stackOptimizer                  // inside an optimizer
	stackNone                       // no frames
)

// stackFacts knows the stacks of a trace. Frames and stacks are looked at once.
type stackFacts struct {
	trace  *trace.Trace
	frames []frameMark
	kinds  []stackKind
	marks  []frameMark // of all frames of a stack
	any    bool        // some event has a stack
}

func newStackFacts(t *trace.Trace) *stackFacts {
	f := &stackFacts{
		trace: t, frames: make([]frameMark, t.Stacks.NumFrames()),
		kinds: make([]stackKind, t.Stacks.Len()), marks: make([]frameMark, t.Stacks.Len()),
	}
	for id := range f.frames {
		frame := frameOf(t, trace.FrameID(id))
		f.frames[id] = markOf(frame)
		if frame.User() {
			f.frames[id] |= markUser
		}
	}
	for id := range f.kinds {
		f.kinds[id] = f.kindOf(trace.StackID(id))
	}
	for i := 0; i < t.Events.Len() && !f.any; i++ {
		f.any = t.Events.Stack.At(i) > trace.EmptyStack
	}
	return f
}

func (f *stackFacts) kindOf(id trace.StackID) stackKind {
	frames := f.trace.Stacks.Frames(id)
	if len(frames) == 0 {
		return stackNone
	}
	kind := stackPlain
	var inside frameMark           // of the frames further in
	for i, frame := range frames { // innermost first
		m := f.frames[frame]
		f.marks[id] |= m
		if kind == stackOptimizer || kind == stackBackward || kind == stackRecompute {
			continue
		}
		switch {
		case m&markOptimizer != 0:
			// An optimizer may call the program back for its forward pass:
			// then what is further in is the program's.
			back := inside&markUser != 0 || inside&markForeign != 0 && m&markAnyOptimizer == 0
			if kind == stackPlain && !back {
				kind = stackOptimizer
			} else if kind == stackPlain {
				inside |= markUser
			}
		case m&markBackward != 0, m&markApply != 0 && i == len(frames)-1:
			if kind == stackModule {
				kind = stackRecompute
			} else {
				kind = stackBackward
			}
		case m&markModule != 0:
			kind = stackModule
		}
		inside |= m
	}
	return kind
}

func frameOf(t *trace.Trace, id trace.FrameID) timeline.Frame {
	f := t.Stacks.Frame(id)
	return timeline.Frame{Name: t.Strings.Text(f.Name), Filename: t.Strings.Text(f.File), Line: f.Line}
}

// markOf reads a frame. The names are those of PyTorch's own files: what they
// do there is fixed.
func markOf(f timeline.Frame) frameMark {
	switch path.Ext(f.Filename) {
	case ".py":
	default:
		return nativeMark(f.Name)
	}
	switch file := f.BelowTorch(); {
	case file == "nn/modules/module.py" && f.Name == "_call_impl":
		return markModule
	case file == "nn/modules/module.py" && (f.Name == "_apply" || f.Name == "convert"):
		return markMove
	case f.Name == "zero_grad":
		return 0
	case file == "optim/optimizer.py":
		return markOptimizer | markAnyOptimizer
	case strings.HasPrefix(file, "optim/"):
		return markOptimizer
	case file == "_tensor.py" && f.Name == "backward", file == "autograd/graph.py" && f.Name == "_engine_run_backward",
		file == "autograd/__init__.py" && (f.Name == "backward" || f.Name == "grad" || f.Name == "_make_grads"),
		file == "utils/checkpoint.py" && (f.Name == "unpack_hook" || f.Name == "recompute_fn"):
		return markBackward
	case file == "autograd/function.py" && f.Name == "apply":
		return markApply
	case file == "":
		return markForeign
	}
	return 0
}

func nativeMark(name string) frameMark {
	switch {
	case strings.HasPrefix(name, "torch::autograd::Engine::"), strings.HasPrefix(name, "torch::autograd::python::PythonEngine::"):
		return markBackward
	case strings.Contains(name, "Workspace") || strings.Contains(name, "workspace"):
		return markWorkspace
	}
	return 0
}

// kind returns what part of the program a stack belongs to. Where other events
// have frames, one without comes from a thread that Python does not know: that
// of the backward pass.
func (f *stackFacts) kind(id trace.StackID) stackKind {
	if k := f.kinds[id]; k != stackNone || !f.any {
		return k
	}
	return stackBackward
}
