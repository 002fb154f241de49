package timeline

import (
	"strings"

	"github.com/ashlar-mem/ashlar/trace"
)

// User reports whether a frame is of the user's own program: not of an
// installed package, of Python itself or of compiled code.
func (f Frame) User() bool { return f.user() }

// Native reports whether a frame is of compiled code, which has no line to show.
func (f Frame) Native() bool { return f.native() }

// BelowTorch returns the part of the frame's path below the package torch, or
// empty.
func (f Frame) BelowTorch() string {
	if i := strings.LastIndex(f.Filename, "/torch/"); i >= 0 {
		return f.Filename[i+len("/torch/"):]
	}
	if rest, ok := strings.CutPrefix(f.Filename, "torch/"); ok {
		return rest
	}
	return ""
}

// OwnPath returns the frames of a stack that show where in the user's program an
// allocation was made, outermost first: the frames for which own is true, and
// last the frame that made the request, if that is in a library.
func OwnPath(t *trace.Trace, id trace.StackID, own []bool) []trace.FrameID {
	ids := t.Stacks.Frames(id)
	return ownPath(ids, func(id trace.FrameID) bool { return own[id] }, func(id trace.FrameID) bool { return frame(t, id).plumbing() })
}

// OwnFrames is OwnPath for frames without a trace.
func OwnFrames(frames []Frame) []Frame { return ownPath(frames, Frame.user, Frame.plumbing) }

func ownPath[F comparable](frames []F, own, plumbing func(F) bool) []F {
	if len(frames) == 0 {
		return nil
	}
	inner := frames[0]
	for _, f := range frames {
		if !plumbing(f) {
			inner = f
			break
		}
	}
	var path []F
	for i := len(frames) - 1; i >= 0; i-- {
		if own(frames[i]) {
			path = append(path, frames[i])
		}
	}
	if n := len(path); n == 0 || path[n-1] != inner {
		path = append(path, inner)
	}
	return path
}
