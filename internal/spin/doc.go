// Package spin has a mutex for very short critical sections.
//
// A [sync.Mutex] under contention puts goroutines to sleep, and waking one
// costs the unlocker more than the critical sections of the allocator last.
// [Mutex] spins for a while before it sleeps like a sync.Mutex. The more
// goroutines wait, the longer each pauses between attempts: taking the lock also
// takes the cache lines it guards from the last holder, who is about to need them
// again, so under load it pays to let that goroutine keep the lock.
package spin
