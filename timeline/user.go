package timeline

// User tells whether a frame is of the user's own program: not of an installed
// package, of Python itself or of compiled code.
func (f Frame) User() bool { return f.user() }
