package main

import (
	"errors"
	"runtime"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/cuda"
)

// The codes of ashlar.h.
const (
	codeOK     = 0
	codeOOM    = 1
	codeFailed = 2
)

// answer is what a request gets.
type answer struct {
	lent alloc.Lent
	text string // of a failure
	note string // that the first overflow happened
	oom  *alloc.OutOfMemoryError
}

// malloc serves a request, after what the front has queued was taken back: one
// crossing. It makes no garbage unless it fails.
func (l *library) malloc(n int, size, stream uint64, meta string, out *answer) int {
	d, err := l.slot(n)
	if err != nil {
		out.text = err.Error()
		return codeFailed
	}
	if out.lent, err = d.alloc.Lender().Lend(size, stream, meta); err == nil {
		if d.note.Load() != nil {
			if note := d.note.Swap(nil); note != nil && d.mover.told.CompareAndSwap(false, true) {
				out.note = *note
			}
		}
		return codeOK
	}
	var oom *alloc.OutOfMemoryError // not out.oom: that would put out on the heap
	if errors.As(err, &oom) {
		out.oom, out.text = oom, d.outOfMemory(oom)
		l.collectGarbage()
		return codeOOM
	}
	out.text = err.Error()
	return codeFailed
}

// collectEvery is how many failed requests leave their garbage lying: some
// kilobytes each.
const collectEvery = 16

// collectGarbage runs the collector after every few failed requests: setCollector has
// turned it off.
func (l *library) collectGarbage() {
	if l.ooms.Add(1)%collectEvery != 0 {
		return
	}
	l.mu.Lock()
	on := l.history.on
	l.mu.Unlock()
	if !on {
		runtime.GC()
	}
}

// free takes back what the front has queued, and then a block, if addr is not 0.
func (l *library) free(n int, addr uint64, meta string, out *answer) {
	d, err := l.slot(n)
	if err != nil {
		out.text = err.Error()
		return
	}
	out.lent.Waiting, err = d.alloc.Lender().Return(addr, meta)
	// A driver that has shut down has taken its memory with it.
	if err != nil && !errors.Is(err, cuda.ErrExiting) {
		out.text = err.Error()
	}
}

func (l *library) recordStream(n int, addr, stream uint64) error {
	d, err := l.slot(n)
	if err != nil {
		return err
	}
	return d.alloc.RecordStream(addr, stream)
}
