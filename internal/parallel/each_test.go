package parallel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	for _, workers := range []int{-1, AllCores, 1, 3, 100} {
		for _, n := range []int{0, 1, 20} {
			calls := make([]int, n)
			err := Each(t.Context(), workers, n, func(i int) error {
				calls[i]++
				return nil
			})
			if err != nil {
				t.Errorf("%d workers, %d calls: %v", workers, n, err)
			}
			for i, c := range calls {
				if c != 1 {
					t.Errorf("%d workers: %d of %d was called %d times", workers, i, n, c)
				}
			}
		}
	}
}

// One worker keeps the order; several are at work at once, and no more than asked for.
func TestEachWorkers(t *testing.T) {
	var order []int
	if err := Each(t.Context(), 1, 5, func(i int) error {
		order = append(order, i)
		return nil
	}); err != nil || fmt.Sprint(order) != "[0 1 2 3 4]" {
		t.Errorf("%v, %v", order, err)
	}

	const workers = 3
	var inside, most atomic.Int64
	var meeting sync.WaitGroup // of the first calls: it ends when all workers are in one
	meeting.Add(workers)
	if err := Each(t.Context(), workers, 50, func(i int) error {
		now := inside.Add(1)
		defer inside.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		if i < workers {
			meeting.Done()
			meeting.Wait()
		}
		runtime.Gosched()
		return nil
	}); err != nil || most.Load() != workers {
		t.Errorf("%d at once, want %d; %v", most.Load(), workers, err)
	}
}

// The error is that of the lowest call, also if a later call failed before it,
// and the others are made all the same.
func TestEachError(t *testing.T) {
	var calls atomic.Int64
	late := make(chan struct{})
	err := Each(t.Context(), 2, 10, func(i int) error {
		calls.Add(1)
		switch i {
		case 0:
			<-late
			return errors.New("first")
		case 1:
			close(late)
			return errors.New("second")
		}
		return nil
	})
	if err == nil || err.Error() != "first" || calls.Load() != 10 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

// When the context ends no more calls begin, and its cause is the error unless a
// call had one.
func TestEachContext(t *testing.T) {
	cause, failed := errors.New("cause"), errors.New("failed")
	for _, want := range []error{cause, failed} {
		ctx, cancel := context.WithCancelCause(t.Context())
		calls := 0
		err := Each(ctx, 1, 10, func(i int) error {
			calls++
			if i == 3 {
				cancel(cause)
				if want == failed {
					return failed
				}
			}
			return nil
		})
		if !errors.Is(err, want) || calls != 4 {
			t.Errorf("%v after %d calls, want %v", err, calls, want)
		}
	}
}

func TestCounter(t *testing.T) {
	Counter(3, nil)()
	var told []int
	done := Counter(50, func(n, total int) { told = append(told, n*total) })
	if err := Each(t.Context(), 4, 50, func(int) error {
		done()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 50 || told[0] != 50 || told[49] != 2500 {
		t.Errorf("%v", told)
	}
}
