// Package spin has a mutex for very short critical sections.
//
// A [sync.Mutex] under contention puts goroutines to sleep, and waking one
// costs the unlocker more than the critical sections of the allocator last.
// [Mutex] keeps trying for some microseconds, with growing pauses that leave
// the lock to whoever works, before it goes to sleep like a sync.Mutex.
package spin

import "sync"

// Mutex is a mutual exclusion lock. The zero value is unlocked. It fills a
// cache line, so that those who wait do not disturb what it guards.
type Mutex struct {
	mu sync.Mutex
	_  [56]byte
}

// Pauses between attempts, in turns of an empty loop (about a third of a
// nanosecond each). Their sum bounds the time before a waiter goes to sleep.
const (
	firstPause = 1 << 10
	growth     = 2
	lastPause  = 1 << 15
)

// Lock locks m.
func (m *Mutex) Lock() {
	if !m.mu.TryLock() {
		m.wait()
	}
}

// Unlock unlocks m.
func (m *Mutex) Unlock() { m.mu.Unlock() }

func (m *Mutex) wait() {
	for pause := firstPause; pause <= lastPause; pause *= growth {
		for range pause {
		}
		if m.mu.TryLock() {
			return
		}
	}
	m.mu.Lock()
}
