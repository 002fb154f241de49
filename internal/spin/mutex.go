package spin

import (
	"sync"
	"sync/atomic"
)

// Mutex is a mutual exclusion lock. The zero value is unlocked. Its parts have
// cache lines of their own, so that those who wait do not disturb what it
// guards, nor each other the holder.
type Mutex struct {
	mu      sync.Mutex
	_       [56]byte
	waiters atomic.Int32
	_       [60]byte
}

// The pause before the first attempt of a goroutine is 2^(firstPause +
// perWaiter*others) turns of an empty loop, about a third of a nanosecond each,
// with others counting those who waited before it; it doubles with each attempt.
const (
	firstPause = 12
	perWaiter  = 2
	mostPause  = 17
	attempts   = 4
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
	others := int(m.waiters.Add(1)) - 1
	pause := 1 << min(firstPause+perWaiter*others, mostPause)
	locked := false
	for i := 0; i < attempts && !locked; i++ {
		for range pause {
		}
		locked = m.mu.TryLock()
		pause *= 2
	}
	if !locked {
		m.mu.Lock()
	}
	m.waiters.Add(-1)
}
