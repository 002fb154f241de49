package eager

// scope remembers which names a function made, so that they can be given up
// when it is left in the middle: Python does that when an exception unwinds
// its frames.
type scope struct {
	outer *scope
	inner []*Tensor
	// kept are names made here of tensors from outside, in the order of the
	// first; place finds one in it.
	kept  []name
	place map[*Tensor]int
}

type name struct {
	t     *Tensor
	count int32
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
	i, ok := s.place[t]
	if !ok {
		if s.place == nil {
			s.place = map[*Tensor]int{}
		}
		i = len(s.kept)
		s.place[t] = i
		s.kept = append(s.kept, name{t: t})
	}
	s.kept[i].count += n
}

// unwind gives up all names, the last ones first: they are in the innermost
// frames.
func (s *scope) unwind() {
	for i := len(s.inner) - 1; i >= 0; i-- {
		t := s.inner[i]
		for ; t.held > 0; t.held-- {
			t.release()
		}
	}
	for _, k := range s.kept {
		for ; k.count > 0; k.count-- {
			k.t.held--
			k.t.release()
		}
	}
}
