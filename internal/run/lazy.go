package run

import "context"

// lazy is a value that is made when it is first asked for.
type lazy[T any] struct {
	turn  chan struct{} // held by whoever makes or reads the value
	made  int           // how often it was made to the end
	value T
	err   error
}

func newLazy[T any]() lazy[T] { return lazy[T]{turn: make(chan struct{}, 1)} }

// get returns the value. An error of the context is not kept.
func (l *lazy[T]) get(ctx context.Context, build func() (T, error)) (T, error) {
	var none T
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	if l.made > 0 {
		return l.value, l.err
	}
	value, err := build()
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	l.value, l.err = value, err
	l.made++
	return value, err
}

// ready reports whether the value was made without an error.
func (l *lazy[T]) ready() bool {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.made > 0 && l.err == nil
}

func (l *lazy[T]) count() int {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.made
}
