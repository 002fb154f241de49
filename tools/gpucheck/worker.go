package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// worker is one goroutine of a soak, with a stream of its own.
type worker struct {
	*soaker
	number int
	rng    *rand.Rand
	stream uint64
	paint  painter

	live   []held
	bytes  uint64
	fences []driver.Event
	slots  int // in use

	allocations, handovers int64
	checked, mismatches    uint64
	problems               []string
}

const workerSlots = 256

func (s *soaker) newWorker(i int) (*worker, error) {
	w := &worker{soaker: s, number: i, rng: rand.New(rand.NewPCG(s.plan.seed, uint64(i)))}
	var err error
	if w.stream, err = s.rig.dev.NewStream(); err != nil {
		return nil, err
	}
	w.paint, err = s.rig.painter(workerSlots)
	return w, err
}

func (w *worker) close() error {
	return errors.Join(w.paint.close(), w.rig.dev.CloseStream(w.stream))
}

// work performs random operations until the time is up.
func (w *worker) work(ctx context.Context) error {
	share := 2 * w.plan.limit / uint64(w.plan.workers) // all together want more than there is
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case p := <-w.inbox[w.number]:
			if err := w.take(p); err != nil {
				return err
			}
		default:
		}
		var err error
		switch x := w.rng.Float64(); {
		case n%128 == 0:
			err = w.recycle()
		case x < 0.65 && w.bytes < share || len(w.live) == 0:
			err = w.malloc()
		case x < 0.72:
			err = w.send()
		case x < 0.721:
			err = w.allocator.EmptyCache()
		default:
			err = w.free(w.rng.IntN(len(w.live)))
		}
		if err != nil {
			return fmt.Errorf("goroutine %d, operation %d: %w", w.number, n, err)
		}
	}
	return nil
}

func (w *worker) malloc() error {
	b := held{size: randomSize(w.rng, w.plan.largest), seed: w.rng.Uint64()}
	var err error
	b.addr, err = w.allocator.Malloc(b.size, w.stream)
	var oom *alloc.OutOfMemoryError
	if errors.As(err, &oom) {
		for n := len(w.live) / 2; n > 0; n-- {
			if err := w.free(w.rng.IntN(len(w.live))); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	w.allocations++
	w.live = append(w.live, b)
	w.bytes += b.size
	return w.paint.write(b.addr, b.size, b.seed, w.stream)
}

// remove takes a block out of the list.
func (w *worker) remove(i int) held {
	b := w.live[i]
	w.live[i] = w.live[len(w.live)-1]
	w.live = w.live[:len(w.live)-1]
	w.bytes -= b.size
	return b
}

func (w *worker) free(i int) error {
	b := w.remove(i)
	if err := w.check(&b); err != nil {
		return err
	}
	return w.allocator.Free(b.addr)
}

// send gives a block to another goroutine, if that one takes it.
func (w *worker) send() error {
	to := w.rng.IntN(len(w.inbox))
	if to == w.number {
		return nil
	}
	b := w.remove(w.rng.IntN(len(w.live)))
	ev, err := w.dev.RecordEvent(w.stream, b.addr)
	if err != nil {
		return err
	}
	select {
	case w.inbox[to] <- parcel{b, ev}:
		w.handovers++
		return nil
	default: // it has enough to do
		w.live = append(w.live, b)
		w.bytes += b.size
		w.fences = append(w.fences, ev)
		return nil
	}
}

// take uses a block of another goroutine on this one's stream and frees it.
func (w *worker) take(p parcel) error {
	w.fences = append(w.fences, p.ready)
	if err := w.dev.StreamWait(w.stream, p.ready); err != nil {
		return err
	}
	if err := w.allocator.RecordStream(p.block.addr, w.stream); err != nil {
		return err
	}
	if err := w.check(&p.block); err != nil {
		return err
	}
	return w.allocator.Free(p.block.addr)
}

func (w *worker) check(b *held) error {
	if w.slots == workerSlots {
		if err := w.readResults(); err != nil {
			return err
		}
	}
	w.slots++
	w.checked += b.size
	return w.paint.check(b.addr, b.size, b.seed, w.stream, w.slots-1)
}

// readResults reads the results of the checks.
func (w *worker) readResults() error {
	if err := w.dev.Synchronize(w.stream); err != nil {
		return err
	}
	found, err := w.paint.results(w.slots)
	if err != nil {
		return err
	}
	w.slots = 0
	for _, f := range found {
		w.mismatches += f.Bad
	}
	return nil
}

func (w *worker) recycle() error {
	kept := w.fences[:0]
	for _, ev := range w.fences {
		done, err := w.dev.EventDone(ev)
		if err != nil {
			return err
		}
		if !done {
			kept = append(kept, ev)
		}
	}
	w.fences = kept
	return nil
}

// finish frees everything that is left.
func (w *worker) finish() error {
	return windUp(w.dev, len(w.live), w.free, w.readResults, &w.fences)
}

// windUp frees what lives, the last first, reads the last results and waits for
// the events.
func windUp(dev *ledger, live int, free func(i int) error, look func() error, fences *[]driver.Event) error {
	for live--; live >= 0; live-- {
		if err := free(live); err != nil {
			return err
		}
	}
	if err := look(); err != nil {
		return err
	}
	// Looking may add events.
	for _, ev := range *fences {
		if err := dev.WaitEvent(ev); err != nil {
			return err
		}
	}
	*fences = (*fences)[:0]
	return nil
}
