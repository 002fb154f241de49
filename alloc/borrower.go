package alloc

// Borrower is a cache in front of the allocator: it gets blocks by
// [Lender.Lend] and may keep those that were freed, to hand them out again by
// itself. The allocator asks for them under its lock, so that a block is at every
// moment either with the borrower or with the allocator: no request grows memory,
// and none fails, while a block that was freed is on its way.
type Borrower interface {
	// Recall moves unused blocks into out and returns how many. They are those that
	// the borrower has given up, in the order in which they were freed; with all,
	// also those that it kept to serve requests. It runs under the
	// allocator's lock and must not call the allocator.
	Recall(out []uint64, all bool) int
}

// recallBatch is how many blocks are recalled at once.
const recallBatch = 256

// WithBorrower makes the allocator take back what b holds before memory grows or
// is given back to the driver.
func WithBorrower(b Borrower) Option {
	return func(a *Allocator) {
		a.borrower, a.recallBuffer = b, make([]uint64, recallBatch)
	}
}

// recall frees the borrower's blocks, and reports whether there were any. If one
// cannot be freed, the others still are.
func (a *Allocator) recall(all bool) (freed bool, failed error) {
	if a.borrower == nil {
		return false, nil
	}
	for {
		n := a.borrower.Recall(a.recallBuffer, all)
		for _, addr := range a.recallBuffer[:n] {
			if err := a.free(addr); err != nil && failed == nil {
				failed = err
			}
			a.afterOperation()
		}
		freed = freed || n > 0
		if n < len(a.recallBuffer) {
			return freed, failed
		}
	}
}
