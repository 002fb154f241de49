package alloc

import "cmp"

// Lender is the entry to an allocator for a cache in front of it, which keeps
// freed blocks and hands them out again by itself: a [Borrower]. It lends blocks
// with what the cache must know of them. The allocator's other methods may be
// called in between.
type Lender struct{ a *Allocator }

// Lender returns the allocator's entry for a cache in front of it.
func (a *Allocator) Lender() Lender { return Lender{a} }

// Lent is a block given to a caller that may keep it when it is freed and hand
// it out again by itself: a cache in front of the allocator.
type Lent struct {
	Addr  uint64
	Size  uint64 // of the block
	Large bool   // the kind of its pool

	// Again says that serving the same size on the same stream with this block
	// again, without asking, differs from a Return and a Lend only in where
	// memory lies, and not even in that if nothing was lent or returned in
	// between. It holds until another stream is recorded on the block,
	// and as long as the settings stay and Lends reports true.
	Again bool

	// Layout differs from that of the answer before if memory came from the
	// driver, went back to it or was moved in between. While it stays the allocator is a
	// stack: after the latest block was returned it is what it was before that
	// block was lent, and would lend it again for the same size and stream.
	Layout uint64

	Waiting Waiting // after the request
}

// Waiting are the blocks that were freed and wait for other streams. They come
// back at the next Lend that asks the allocator, so as long as there are any a
// cache in front of it should ask.
type Waiting struct {
	// Seq rises with every Lend and Return, to order answers.
	Seq          uint64
	Small, Large WaitingBlocks
}

// WaitingBlocks are the sums over the blocks of one kind of pool.
type WaitingBlocks struct {
	Blocks, Bytes, Requested int64
}

// Lend is [Allocator.Malloc] with a description of the block. A non-empty meta replaces
// the text of [Allocator.SetMetadata] for the events of this call. What a borrower
// has given up is taken back first; if that fails nothing is lent.
func (l Lender) Lend(size, stream uint64, meta string) (Lent, error) {
	a := l.a
	a.mu.Lock()
	if _, err := a.recall(false); err != nil {
		a.mu.Unlock()
		return Lent{}, err
	}
	if size == 0 || size >= maxRequest {
		a.mu.Unlock()
		if size == 0 {
			return Lent{}, nil
		}
		return Lent{}, &OutOfMemoryError{Device: a.device, Requested: size, TooLarge: true}
	}
	before := a.meta
	if meta != "" {
		a.meta = meta
	}
	id, err := a.mallocBlock(size, stream, 0, true)
	if err != nil {
		id, err = a.lastResort(err, size, stream, 0)
	}
	a.meta = before
	a.afterOperation()
	lent := Lent{Waiting: a.waitingNow(), Layout: uint64(a.stats.deviceBefore + a.stats.deviceAllocs + a.stats.deviceFrees + a.moved)}
	if err == nil {
		b := &a.blocks[id]
		p := a.streamPools[b.streamPool].pool
		lent.Addr, lent.Size, lent.Large = b.addr, b.size, p.kind == large
		lent.Again = p.private == nil && b.size < a.cfg.MaxSplitSize && !b.elsewhere && a.lends()
	}
	a.endRequest()
	if err != nil {
		return lent, a.notifyOOM(err)
	}
	return lent, nil
}

// Return is [Allocator.Free] for a block that was lent, after what a borrower has given up;
// with an address of 0 for that alone.
func (l Lender) Return(addr uint64, meta string) (Waiting, error) {
	a := l.a
	a.mu.Lock()
	_, failed := a.recall(false)
	if addr == 0 {
		w := a.waitingNow()
		a.mu.Unlock()
		return w, failed
	}
	before := a.meta
	if meta != "" {
		a.meta = meta
	}
	err := a.free(addr)
	a.meta = before
	a.afterOperation()
	w := a.waitingNow()
	a.mu.Unlock()
	return w, cmp.Or(failed, err)
}

// Lends reports whether any block may be handed out again without asking. It
// may not while a route decides where requests go, while every event is observed,
// and while garbage collection counts the searches.
func (l Lender) Lends() bool {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	return l.a.lends()
}

func (a *Allocator) lends() bool {
	return len(a.routes) == 0 && !a.armed && !a.tracing() && a.explain == nil
}

// Recall takes back all that the borrower holds, and then calls then, if there is
// one, with the numbers of that moment. It runs under the lock, so that what it
// reads of the borrower belongs to them, and must not call the allocator.
func (l Lender) Recall(then func(*Stats, *Waiting)) error {
	a := l.a
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.recall(true)
	if then != nil {
		s, w := a.stats.read(), a.waitingNow()
		then(&s, &w)
	}
	return err
}

// Waiting returns the sums over the blocks that wait for other streams.
func (l Lender) Waiting() Waiting {
	l.a.mu.Lock()
	defer l.a.mu.Unlock()
	return l.a.waitingNow()
}

func (a *Allocator) waitingNow() Waiting {
	a.lendings++
	w := Waiting{Seq: a.lendings}
	if a.waiting == ([numKinds]int64{}) {
		return w
	}
	for k, to := range [numKinds]*WaitingBlocks{&w.Small, &w.Large} {
		c := &a.stats.kinds[k]
		to.Blocks = c.current(statActive) - c.current(statAllocation)
		to.Bytes = c.current(statActiveBytes) - c.current(statAllocatedBytes)
		to.Requested = a.waiting[k]
	}
	return w
}
