package alloc

// Usage says what the reserved memory is used for at one moment.
type Usage struct {
	Reserved      uint64 // obtained from the driver
	Allocated     uint64 // handed out
	Active        uint64 // and freed but still in use on another stream
	InactiveSplit uint64 // free blocks whose plain segment is partly in use
	Releasable    uint64 // of the free blocks, what EmptyCache would give back from the default pools
}

// Usage returns the sums, all of the same moment. It takes time proportional to
// the number of free blocks.
func (a *Allocator) Usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := Usage{Reserved: a.reserved, Releasable: a.releasableBytes()}
	for k := range a.stats.kinds {
		c := &a.stats.kinds[k]
		u.Allocated += uint64(c.current(statAllocatedBytes))
		u.Active += uint64(c.current(statActiveBytes))
		u.InactiveSplit += uint64(c.current(statInactiveSplitBytes))
	}
	return u
}

// Trim is [Allocator.EmptyCache] for those who do not know what the program is
// doing: it releases only if at least least bytes would come back from the
// default pools, and not while a route is active, which is a
// [*RouteActiveError]. It returns the bytes given back to the driver.
func (a *Allocator) Trim(least uint64) (released uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.capturingAny() {
		return 0, &RouteActiveError{Doing: "trimming"}
	}
	if _, err := a.recall(true); err != nil {
		return 0, err
	}
	if n := a.releasableBytes(); n == 0 || n < least {
		return 0, nil
	}
	before := a.reserved
	if a.explain != nil {
		a.explain(FullRelease{})
	}
	err = a.releaseCached(false)
	a.afterOperation()
	return before - a.reserved, err
}
