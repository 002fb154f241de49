package eager

// scope remembers which names a function made, so that they can be given up
// when it is left in the middle: Python does that when an exception unwinds
// its frames.
type scope struct {
	outer *scope
	inner []*Tensor
	kept  map[*Tensor]int32 // names made here of tensors from outside
}

func (s *scope) made(t *Tensor) {
	if s != nil {
		s.inner = append(s.inner, t)
	}
}

func (s *scope) keep(t *Tensor, n int32) {
	if s == nil || t.scope == s {
		return
	}
	if s.kept == nil {
		s.kept = map[*Tensor]int32{}
	}
	s.kept[t] += n
}

// unwind gives up all names.
func (s *scope) unwind() {
	for _, t := range s.inner {
		for ; t.held > 0; t.held-- {
			t.release()
		}
	}
	for t, n := range s.kept {
		for ; n > 0; n-- {
			t.held--
			t.release()
		}
	}
}

// close hands what is still held over to the scope around.
func (s *scope) close() {
	for _, t := range s.inner {
		t.scope = s.outer
		if t.held > 0 {
			s.outer.made(t)
		}
	}
	for t, n := range s.kept {
		s.outer.keep(t, n)
	}
}
