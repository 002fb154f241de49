package prognosis

import "math"

// scale predicts the sizes of the step that failed from those of an earlier one,
// its template. Sizes that kept a ratio in all earlier steps keep it: what was
// twice another one is so now.
type scale struct {
	h        *history
	template int
	steps    []int // the earlier steps that are compared
	classes  map[class]*ratio
	before   float64         // overall without the request
	overall  ratio           // of what a step frees again
	lasting  map[uint64]bool // sizes of blocks from before the steps: what has one of them belongs to a weight
}

// class is a group of allocations whose sizes have the same ratios from step to
// step.
type class struct {
	shape uint64 // hash of the ratios
	stays bool   // beyond the step
}

// ratio is how much larger a class is now than in the template.
type ratio struct {
	now, then uint64               // sums
	bytes     map[[2]uint64]uint64 // ratio, reduced -> bytes of the template that have it
}

func (r *ratio) add(now, then uint64) {
	if r.bytes == nil {
		r.bytes = map[[2]uint64]uint64{}
	}
	n, d := reduce(now, then)
	r.bytes[[2]uint64{n, d}] += then
	r.now += now
	r.then += then
}

// of returns a size of the template as it is now: by the ratio that most bytes
// have, or the mean if none has half of them. What outlives a step does not grow
// with the batch, unless all of it does.
func (r *ratio) of(size uint64, stays bool) uint64 {
	if r.then == 0 || stays && len(r.bytes) > 1 {
		return size
	}
	for f, bytes := range r.bytes {
		if 2*bytes > r.then {
			return uint64(math.Round(float64(size) * float64(f[0]) / float64(f[1])))
		}
	}
	return uint64(float64(size) * r.value())
}

func (r *ratio) value() float64 {
	if r.then == 0 {
		return 1
	}
	return float64(r.now) / float64(r.then)
}

// newScale compares the beginning of the step that failed with its template.
func newScale(h *history, template int, steps []int) *scale {
	s := &scale{h: h, template: template, steps: steps, classes: map[class]*ratio{}, lasting: map[uint64]bool{}}
	for i := range h.allocs {
		if a := &h.allocs[i]; a.step < 0 && a.freed < 0 {
			s.lasting[a.size] = true
		}
	}
	q := h.failing()
	for i := h.first[q]; i < h.first[q+1]; i++ {
		if then, ok := h.twin(i, template); ok {
			s.add(h.allocs[i].size, then)
		}
	}
	s.before = s.overall.value()
	if then, ok := h.find(template, h.wanted); ok {
		s.add(h.request.Size, then)
	}
	return s
}

// add compares a size with that of its counterpart in the template.
func (s *scale) add(now uint64, then int) {
	was := s.h.allocs[then].size
	stays := s.stays(then)
	if !stays {
		s.overall.add(now, was)
	}
	c, ok := s.classOf(then, stays)
	if !ok {
		return
	}
	r := s.classes[c]
	if r == nil {
		r = &ratio{}
		s.classes[c] = r
	}
	r.add(now, was)
}

// classOf returns the class of an allocation of the template; false if some step
// lacks it.
func (s *scale) classOf(position int, stays bool) (class, bool) {
	const prime = 1099511628211
	first := s.h.allocs[position].size
	hash := uint64(14695981039346656037)
	for _, step := range s.steps {
		if step == s.template {
			continue
		}
		i, ok := s.h.twin(position, step)
		if !ok && step == 0 {
			continue // the first step does some things otherwise
		}
		if !ok {
			return class{}, false
		}
		n, d := reduce(s.h.allocs[i].size, first)
		hash = ((hash ^ n) * prime) ^ d
		hash *= prime
	}
	return class{hash, stays}, true
}

// stays reports whether an allocation outlives its step, or has the size of one
// that does.
func (s *scale) stays(position int) bool {
	return s.h.age(position) != 0 || s.lasting[s.h.allocs[position].size]
}

func reduce(a, b uint64) (uint64, uint64) {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	if x == 0 {
		return a, b
	}
	return a / x, b / x
}

// size predicts the size now of an allocation of the template.
func (s *scale) size(position int) uint64 {
	size := s.h.allocs[position].size
	stays := s.stays(position)
	if c, ok := s.classOf(position, stays); ok {
		if r := s.classes[c]; r != nil {
			return r.of(size, stays)
		}
	}
	if stays {
		return size
	}
	return s.overall.of(size, false)
}
