package save

import (
	"fmt"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
)

// Pending is a save on its way. The memory that is saved must not change
// before it was copied.
type Pending struct {
	dev    driver.Copier
	queued chan struct{} // closed when no more copies will be queued
	copied chan struct{}
	done   chan struct{}
	err    error // once done

	mu      sync.Mutex
	passed  bool         // last is gone
	hasLast bool         // last marks the end of the copies
	last    driver.Event // recorded before queued was closed
}

func newPending(dev driver.Copier) *Pending {
	return &Pending{dev: dev, queued: make(chan struct{}), copied: make(chan struct{}), done: make(chan struct{})}
}

// Copied is closed when the memory is read no more, because it was copied or
// because the save failed.
func (p *Pending) Copied() <-chan struct{} { return p.copied }

// Done is closed when the file is on disk or the save has failed.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits for Done and reports what went wrong.
func (p *Pending) Wait() error {
	<-p.done
	return p.err
}

// Fence lets work queued on stream from now on wait until the memory was
// copied. The caller waits only until the last copy is queued: not at all if
// what is saved fits into the saver's buffers and no other save is before it,
// else until the disk has taken enough of it. A stream that is being captured
// cannot wait for anything outside its graph: the error is [driver.ErrCapturing],
// and the capture goes on.
func (p *Pending) Fence(stream uint64) error {
	<-p.queued
	p.mu.Lock()
	if p.passed {
		p.mu.Unlock()
		return nil
	}
	if p.hasLast {
		defer p.mu.Unlock()
		if err := refuseCapturing(p.dev, stream); err != nil {
			return fmt.Errorf("save: letting the copies come first: %w", err)
		}
		if err := p.dev.StreamWait(stream, p.last); err != nil {
			return fmt.Errorf("save: letting stream %#x wait for the copies: %w", stream, err)
		}
		return nil
	}
	p.mu.Unlock()
	<-p.copied // there is no mark: the driver refused it
	return nil
}

// markQueued notes that no more copies will be queued on the saver's stream.
func (p *Pending) markQueued(stream uint64) {
	ev, err := p.dev.RecordEvent(stream, 0)
	p.mu.Lock()
	p.last, p.hasLast = ev, err == nil
	p.mu.Unlock()
	close(p.queued)
}

// markCopied notes that the saver's stream has passed all copies. Asking for an event
// that is done lets the driver use it again.
func (p *Pending) markCopied() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed = true
	var err error
	if p.hasLast {
		_, err = p.dev.EventDone(p.last)
	}
	close(p.copied)
	return err
}
