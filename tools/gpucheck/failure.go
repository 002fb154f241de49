package main

import (
	"errors"
	"slices"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/replay/oracle"
)

// failure is the error of the operation on the device, unless it is that the
// limit allows no more: nothing that a recording does fails in another way. A
// device that has not the memory which the recorded one had has failed too.
func (l *lockstep) failure() error {
	var oom *alloc.OutOfMemoryError
	if err := l.dev.log.err; err != nil && !errors.As(err, &oom) {
		return err
	}
	if l.dev.log.refused() && !l.ref.log.refused() {
		return errors.New("the device refused memory, which the recorded one did not")
	}
	return nil
}

// refused reports whether the device had no memory to give.
func (l *opLog) refused() bool {
	return slices.ContainsFunc(l.decisions, func(d alloc.Decision) bool {
		_, ok := d.(alloc.DriverRefusal)
		return ok
	})
}

// refusedOnce lets the runs go on after an allocation that the limit refused in
// one of them only, as it may once they have parted: nobody has the block then.
// It reports false for any other end.
func (l *lockstep) refusedOnce(i int) bool {
	if l.rec.Ops[i].Kind != oracle.OpAlloc || l.dev.log.refused() {
		return false
	}
	if l.dev.log.err != nil {
		return true // freeing what is not there does nothing
	}
	return l.dev.allocator.Free(l.dev.log.addr) == nil
}

// explained reports whether the runs parted at a tie, or at what follows from
// one: segments that were exchanged have not been free for equally long, which
// garbage collection looks at, so it may give others back. A device that failed
// explains itself.
func (l *lockstep) explained(out *outcome) bool {
	if out.parted == nil || out.failed != nil {
		return false
	}
	_, limited := l.dev.allocator.Limit()
	collects := limited && l.dev.allocator.Settings().GarbageCollectionThreshold > 0
	return out.parted.Tie != nil || collects && len(l.ties) > 0 && out.parted.release()
}
