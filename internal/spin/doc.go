// Package spin has a mutex for very short critical sections.
//
// A [sync.Mutex] under contention puts goroutines to sleep, and waking one
// costs the unlocker more than the critical sections of the allocator last.
// [Mutex] keeps trying for a while before it goes to sleep like a sync.Mutex.
// The more goroutines wait, the longer each pauses between attempts: whoever
// takes the lock also takes the cache lines it guards away from a holder that
// is about to need them again, so under load it pays to leave it the lock.
package spin
