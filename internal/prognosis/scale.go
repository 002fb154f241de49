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
	overall  ratio // of what a step frees again
}

// class is a group of allocations whose sizes have the same ratios from step to
// step.
type class struct {
	shape uint64 // hash of the ratios
	stays bool   // beyond the step
}

// ratio is how much larger a class is now than in the template.
type ratio struct {
	now, then uint64 // sums
	first     [2]uint64
	differ    bool
}

func (r *ratio) add(now, then uint64) {
	if r.then == 0 {
		r.first = [2]uint64{now, then}
	} else if !sameRatio(r.first, now, then) {
		r.differ = true
	}
	r.now += now
	r.then += then
}

func (r *ratio) value() float64 {
	if r.then == 0 {
		return 1
	}
	return float64(r.now) / float64(r.then)
}

// sameRatio reports whether now : then is as first. Small sizes are rounded.
func sameRatio(first [2]uint64, now, then uint64) bool {
	a, b := float64(first[0])*float64(then), float64(first[1])*float64(now)
	return math.Abs(a-b) <= 1e-9*max(a, b)
}

// newScale compares the beginning of the step that failed with its template.
func newScale(h *history, template int, steps []int) *scale {
	s := &scale{h: h, template: template, steps: steps, classes: map[class]*ratio{}}
	q := h.failing()
	for i := h.first[q]; i < h.first[q+1]; i++ {
		if then, ok := h.twin(i, template); ok {
			s.add(h.allocs[i].size, then)
		}
	}
	if then, ok := h.find(template, h.wanted); ok {
		s.add(h.request.Size, then)
	}
	return s
}

// add compares a size with that of its counterpart in the template.
func (s *scale) add(now uint64, then int) {
	stays := s.h.age(then) != 0
	was := s.h.allocs[then].size
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
		if !ok {
			return class{}, false
		}
		n, d := reduce(s.h.allocs[i].size, first)
		hash = ((hash ^ n) * prime) ^ d
		hash *= prime
	}
	return class{hash, stays}, true
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
	stays := s.h.age(position) != 0
	if c, ok := s.classOf(position, stays); ok {
		if r := s.classes[c]; r != nil {
			if !r.differ {
				return multiply(size, r.first[0], r.first[1])
			}
			return uint64(float64(size) * r.value())
		}
	}
	if stays {
		return size
	}
	return uint64(float64(size) * s.overall.value())
}

func multiply(size, now, then uint64) uint64 {
	if now == then || then == 0 {
		return size
	}
	return uint64(math.Round(float64(size) * float64(now) / float64(then)))
}
