package timeline

import "github.com/ashlar-mem/ashlar/trace"

// User tells whether a frame is of the user's own program: not of an installed
// package, of Python itself or of compiled code.
func (f Frame) User() bool { return f.user() }

// OwnPath returns the frames of a stack that tell where in the user's program an
// allocation was made, outermost first: the program's own frames, as own tells
// for each frame, and at the end the place where the memory was asked for, if
// that is in a library.
func OwnPath(t *trace.Trace, id trace.StackID, own []bool) []trace.FrameID {
	ids := t.Stacks.Frames(id)
	if len(ids) == 0 {
		return nil
	}
	inner := ids[0]
	for _, id := range ids {
		if !frame(t, id).plumbing() {
			inner = id
			break
		}
	}
	var path []trace.FrameID
	for i := len(ids) - 1; i >= 0; i-- {
		if own[ids[i]] {
			path = append(path, ids[i])
		}
	}
	if n := len(path); n == 0 || path[n-1] != inner {
		path = append(path, inner)
	}
	return path
}
