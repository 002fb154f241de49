package view

import (
	"math"
	"regexp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/timeline"
)

// selection chooses lives by what they are. All that is set must hold.
type selection struct {
	any    bool // something is set
	lives  *timeline.Lives
	stacks []bool // nil: all
	min    uint64
	max    uint64
	stream *uint64
	pool   *alloc.PoolID
	at     int // -2: whenever
	stays  bool
}

// selection reads stack, min, max, stream, pool, alive and never_freed.
func (r *request) selection() *selection {
	q := r.q
	s := &selection{
		lives: r.run.lives, min: q.size("min", 0), max: q.size("max", math.MaxUint64), stream: q.handle("stream"), pool: q.pool("pool"),
		at: q.event("alive", -2, r.run), stays: q.flag("never_freed"),
	}
	if text := q.values.Get("stack"); text != "" {
		s.stacks = r.matching(text)
	}
	s.any = s.stacks != nil || s.min > 0 || s.max < math.MaxUint64 || s.stream != nil || s.pool != nil || s.at >= -1 || s.stays
	return s
}

// maxExpression is the longest expression: one that somebody typed.
const maxExpression = 1000

// matching tells for each stack whether it matches an expression.
func (r *request) matching(text string) []bool {
	if len(text) > maxExpression {
		r.q.bad("stack is longer than %d characters", maxExpression)
		return nil
	}
	r.run.caches.Lock()
	defer r.run.caches.Unlock()
	out, err := r.run.stacks.get(text, func() ([]bool, error) {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		return timeline.MatchStacks(r.run.trace, re), nil
	})
	if err != nil {
		r.q.bad("stack is no regular expression: %v", err)
	}
	return out
}

// has tells whether a life is chosen.
func (s *selection) has(life int) bool {
	l := s.lives
	size := l.Size[life]
	switch {
	case !s.any:
		return true
	case size < s.min || size > s.max:
		return false
	case s.stays && l.Freed[life] != timeline.Never:
		return false
	case s.at >= -1 && !(int(l.Born[life]) <= s.at && s.at < int(l.Gone[life])):
		return false
	case s.stream != nil && l.Stream(life) != *s.stream:
		return false
	case s.pool != nil && (l.Pool(life) == timeline.NoPoolKnown || l.Pools[l.Pool(life)] != *s.pool):
		return false
	}
	return s.stacks == nil || s.stacks[l.Stack(life)]
}
