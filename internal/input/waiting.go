package input

import (
	"context"
	"io"
)

// Unblocked does what may wait for ever, as opening and reading a pipe do, and
// gives up when the context ends. What was given up goes on until the program
// ends, so it must not touch anything of the caller's.
func Unblocked[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Waiting reads from r, which may have nothing yet, until the context ends.
func Waiting(ctx context.Context, r io.Reader) io.Reader { return &waitingReader{ctx: ctx, r: r} }

// waitingReader reads from what may have nothing yet, until its context ends.
type waitingReader struct {
	ctx    context.Context
	r      io.Reader
	buffer []byte // not the caller's: a read that was given up may still fill it
}

func (w *waitingReader) Read(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	if w.buffer == nil {
		w.buffer = make([]byte, headBytes)
	}
	n, err := Unblocked(w.ctx, func() (int, error) { return w.r.Read(w.buffer[:min(len(p), len(w.buffer))]) })
	return copy(p, w.buffer[:n]), err
}
