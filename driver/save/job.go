package save

import (
	"context"
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
)

// job is one save. It runs as three steps that hand buffers on: queue copies
// into free buffers, wait until each was filled, write it and free it again.
type job struct {
	saver   *Saver
	pending *Pending
	path    string
	header  []byte
	pieces  []piece
	begin   driver.Event // the state of memory to save

	ctx    context.Context // ended by the caller, by Close, and by the first failure
	cancel context.CancelCauseFunc
	stop   func() bool // of the link to the saver's context
}

// filling is a buffer that a copy is queued for; filled is one that has arrived.
type filling struct {
	buf  []byte
	used int
	done driver.Event
}

type filled struct {
	buf  []byte
	used int
}

// run does the job and reports its end.
func (j *job) run() {
	inFlight := make(chan filling, cap(j.saver.free))
	arrived := make(chan filled, cap(j.saver.free))
	var steps sync.WaitGroup
	steps.Go(func() { j.queue(inFlight) })
	steps.Go(func() { j.wait(inFlight, arrived) })
	if err := j.write(arrived); err != nil {
		j.pending.err = fmt.Errorf("save: %s: %w", j.path, err)
	}
	steps.Wait()
	j.stop()
	j.cancel(nil)
	close(j.pending.done)
}

// queue lets the saver's stream wait for the state to save and queues copies as
// buffers become free.
func (j *job) queue(inFlight chan<- filling) {
	defer close(inFlight)
	defer j.pending.markQueued(j.saver.stream)
	if err := j.saver.dev.StreamWait(j.saver.stream, j.begin); err != nil {
		j.fail("waiting for the work before it", err)
		return
	}
	left := j.pieces
	for len(left) > 0 && j.ctx.Err() == nil {
		var buf []byte
		select {
		case buf = <-j.saver.free:
		case <-j.ctx.Done():
			return
		}
		f := filling{buf: buf}
		var err error
		f.used, left, err = j.fill(buf, left)
		if err != nil {
			j.fail("copying from the device", err)
		}
		if f.done, err = j.saver.dev.RecordEvent(j.saver.stream, 0); err != nil {
			// Without the event, only waiting for all copies shows that they are done.
			j.fail("marking a copy", err)
			if err := j.saver.dev.Synchronize(j.saver.stream); err != nil {
				j.saver.breakDown(err)
			}
			j.saver.free <- buf
			return
		}
		inFlight <- f
	}
}

// fill queues copies until a buffer is full or nothing is left. After an error
// some may be queued.
func (j *job) fill(buf []byte, left []piece) (used int, rest []piece, err error) {
	for len(left) > 0 && used < len(buf) {
		n := min(left[0].size, uint64(len(buf)-used))
		if err := j.saver.dev.CopyToHost(buf[used:used+int(n)], left[0].addr, j.saver.stream); err != nil {
			return used, left, err
		}
		used += int(n)
		left[0].addr += n
		if left[0].size -= n; left[0].size == 0 {
			left = left[1:]
		}
	}
	return used, left, nil
}

// wait passes buffers on in the order in which they are filled. When all are
// the memory is free to change.
func (j *job) wait(inFlight <-chan filling, arrived chan<- filled) {
	defer close(arrived)
	for f := range inFlight {
		if err := j.saver.dev.WaitEvent(f.done); err != nil {
			j.fail("copying from the device", err)
			j.saver.breakDown(err)
		}
		arrived <- filled{f.buf, f.used}
	}
	// Only this reports errors in the copies. By then the stream has passed the
	// events of the save, so they can be given up.
	if err := j.saver.dev.Synchronize(j.saver.stream); err != nil {
		j.fail("copying from the device", err)
	}
	if _, err := j.saver.dev.EventDone(j.begin); err != nil {
		j.fail("waiting for the work before it", err)
	}
	if err := j.pending.markCopied(); err != nil {
		j.fail("waiting for the copies", err)
	}
}

// write puts the header and the buffers into the file and makes it durable. It
// returns the first failure of any step.
func (j *job) write(arrived <-chan filled) error {
	f, err := create(j.saver.disk, j.path)
	if err == nil {
		err = f.write(j.header)
	}
	if err != nil {
		j.cancel(err)
	}
	for b := range arrived {
		if j.ctx.Err() == nil {
			if err := f.write(b.buf[:b.used]); err != nil {
				j.cancel(err)
			}
		}
		j.saver.free <- b.buf
	}
	// The copies are checked by now: arrived is closed after that.
	switch {
	case j.ctx.Err() == nil:
		return f.commit(j.ctx)
	case f != nil:
		f.discard()
	}
	return context.Cause(j.ctx)
}

// fail ends the job.
func (j *job) fail(doing string, err error) { j.cancel(fmt.Errorf("%s: %w", doing, err)) }
