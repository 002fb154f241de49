package arena

// Scope is a part of an arena's life. Scopes nest.
type Scope struct {
	a       *Arena
	round   uint64
	depth   int // scopes that were open before
	current int
	offset  uint64
	used    uint64
	large   int
}

// Scope begins a scope: what is allocated from here on is freed by its End.
func (a *Arena) Scope() Scope {
	s := Scope{a: a, round: a.round, depth: a.scopes, current: a.current, used: a.used, large: len(a.large)}
	if a.current >= 0 {
		s.offset = a.next - a.chunks[a.current].addr
	}
	a.scopes++
	return s
}

// End frees what was allocated since the scope began. It is an [ErrScope] if the
// scope is not the innermost one; nothing is freed then. Any other error is the
// allocator's, and the scope has ended.
func (s Scope) End() error {
	a := s.a
	if s.round != a.round || s.depth+1 != a.scopes {
		return ErrScope
	}
	a.scopes = s.depth
	a.used = s.used
	switch {
	case s.current >= 0:
		a.enter(s.current, s.offset)
	case len(a.chunks) > 0: // there was none when the scope began
		a.enter(0, 0)
	}
	return a.freeLarge(s.large)
}

// Usage is what an arena holds.
type Usage struct {
	Used   uint64 // handed out, in multiples of Align
	Peak   uint64 // the most that Used has been
	Chunks uint64 // bytes of chunks
	Large  uint64 // bytes of requests with a block of their own
}

// Usage returns what the arena holds now.
func (a *Arena) Usage() Usage {
	u := Usage{Used: a.used, Peak: a.peak}
	for _, c := range a.chunks {
		u.Chunks += c.size
	}
	for _, b := range a.large {
		u.Large += b.size
	}
	return u
}

// ResetPeak makes the peak what is used now, so that each step has its own.
func (a *Arena) ResetPeak() { a.peak = a.used }
