package main

import (
	"fmt"
	"sync"
	"time"
)

const (
	progressDelay    = time.Second // short work shows none
	progressInterval = 200 * time.Millisecond
)

// progress is a line on the terminal that says how far the work is. Without a
// terminal it does nothing.
type progress struct {
	std   stdio
	total int // 0 if not known
	what  string

	mu    sync.Mutex
	done  int
	shown bool
	timer *time.Timer // nil without a terminal and after the end
}

func startProgress(std stdio, total int, what string) *progress {
	p := &progress{std: std, total: total, what: what}
	if std.terminal {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.timer = time.AfterFunc(progressDelay, p.tick)
	}
	return p
}

func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return
	}
	fmt.Fprintf(p.std.err, "\rashlar: %s\x1b[K", p.text())
	p.shown = true
	p.timer.Reset(progressInterval)
}

// update says how much is done, of how much if that is known.
func (p *progress) update(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total = done, total
	p.tell()
}

// say is update for work whose total is unknown and whose unit changes.
func (p *progress) say(done int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.what = done, 0, what
	p.tell()
}

// tell tells an agent.
func (p *progress) tell() {
	if p.std.agent != nil {
		p.std.agent.progress(p.text())
	}
}

// text says how far the work is.
func (p *progress) text() string {
	of := ""
	if p.total > 0 {
		of = " of " + count(p.total)
	}
	return count(p.done) + of + " " + p.what
}

// pause counts one piece of work as done and runs f, which prints its result,
// with the line out of the way.
func (p *progress) pause(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.clear()
	f()
}

// stop removes the line for good.
func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.clear()
}

func (p *progress) clear() {
	if p.shown {
		p.std.clearLine()
		p.shown = false
	}
}

// clearLine removes a line of progress from the terminal, if there is one.
func (s stdio) clearLine() {
	if s.terminal {
		fmt.Fprint(s.err, "\r\x1b[K")
	}
}
