package view

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// selection chooses blocks or segments by what they are. All that is set must
// hold.
type selection struct {
	any    bool // something is set
	of     *stacked
	stacks []bool // nil: all
	min    uint64
	max    uint64
	stream *uint64
	pool   int // position in the list; -1: all
	at     int // -2: whenever
	stays  bool
	colour *uint32 // nil: all
	paint  func(i int32) uint32
	like   *trace.StackID // nil: all
}

// selection reads stack, min, max, stream, pool, alive, never_freed, like, and
// pick with color.
func (r *request) selection(of *stacked) *selection {
	q := r.query
	s := &selection{
		of: of, min: q.size("min", 0), max: q.size("max", math.MaxUint64), stream: q.handle("stream"), pool: -1,
		at: q.event("alive", -2, r.run), stays: q.flag("never_freed"),
	}
	if p := q.pool("pool"); p != nil {
		if s.pool = slices.Index(r.run.lives.Pools, *p); s.pool < 0 {
			s.pool = nowhere
		}
	}
	if q.has("stack") {
		s.stacks = r.matchingStacks("stack")
	}
	if q.has("pick") {
		colour := uint32(q.integer("pick", 0, 0, 1<<colourBits-1))
		s.colour, s.paint = &colour, r.run.painter(of, q.choice("color", colourings...))
	}
	if q.has("like") {
		if i := q.integer("like", -1, 0, r.run.lives.Len()-1); i >= 0 {
			stack := r.run.lives.Stack(i)
			s.like = &stack
		}
	}
	s.any = s.like != nil || s.colour != nil || s.stacks != nil || s.min > 0 || s.max < math.MaxUint64 || s.stream != nil || s.pool >= 0 || s.at >= -1 || s.stays
	return s
}

// nowhere is the position of a pool that is not in the file.
const nowhere = math.MaxInt

// maxExpression is the longest expression: one that somebody typed.
const maxExpression = 1000

// expression reads a regular expression; nil if it is none.
func (q *query) expression(name string) *regexp.Regexp {
	re, err := expression(q.values.Get(name))
	if err != nil {
		q.bad("%s %v", name, err)
		return nil
	}
	return re
}

// expression compiles what somebody typed.
func expression(text string) (*regexp.Regexp, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("is longer than %d characters", maxExpression)
	}
	re, err := regexp.Compile(text)
	var parse *syntax.Error
	if errors.As(err, &parse) {
		return nil, fmt.Errorf("is no regular expression: %v in %q", parse.Code, parse.Expr)
	}
	return re, err
}

// matchingStacks reports for each stack whether it matches an expression.
func (r *request) matchingStacks(name string) []bool {
	r.run.caches.Lock()
	defer r.run.caches.Unlock()
	out, err := r.run.stacks.get(r.query.values.Get(name), func() ([]bool, error) {
		re, err := expression(r.query.values.Get(name))
		if err != nil {
			return nil, err
		}
		return timeline.MatchStacks(r.run.trace, re), nil
	})
	if err != nil {
		r.query.bad("%s %v", name, err)
	}
	return out
}

// checked is what is wrong with something that was typed.
type checked struct {
	Wrong *string `json:"wrong"` // nil: nothing
}

// check is api/check: whether filters take a stack, size or addr. The page asks
// while somebody types, so that one that is not complete yet is no error.
func (r *request) check() error {
	r.query.expression("stack")
	r.query.size("size", 0)
	r.query.handle("addr")
	out := checked{}
	if r.query.err != nil {
		text := r.query.err.Error()
		out.Wrong = &text
	}
	return r.json(out)
}

// has reports whether the i-th block or segment is selected.
func (s *selection) has(i int) bool {
	of := s.of
	switch {
	case !s.any:
		return true
	case of.Size[i] < s.min || of.Size[i] > s.max:
		return false
	case s.stays && of.Freed[i] != timeline.Never:
		return false
	case s.at >= -1 && !(int(of.Born[i]) <= s.at && s.at < int(of.Gone[i])):
		return false
	case s.stream != nil && of.stream(i) != *s.stream:
		return false
	case s.pool >= 0 && of.pool(i) != s.pool:
		return false
	case s.like != nil && of.stack(i) != *s.like:
		return false
	case s.colour != nil && s.paint(int32(i)) != *s.colour:
		return false
	}
	return s.stacks == nil || s.stacks[of.stack(i)]
}
