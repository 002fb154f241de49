package run

import (
	"context"
	"sync/atomic"
)

// lazy is a value that is made when it is first asked for.
type lazy[T any] struct {
	turn  chan struct{} // held by whoever makes or reads the value
	made  bool
	value T
	err   error
	times atomic.Int32 // how often it was made to the end
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
	if l.made {
		return l.value, l.err
	}
	value, err := build()
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	l.value, l.err, l.made = value, err, true
	l.times.Add(1)
	return value, err
}

// ready reports whether the value was made without an error.
func (l *lazy[T]) ready() bool {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.made && l.err == nil
}
