package view

import (
	"slices"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// stacked is what a picture or a tree is made of: blocks, or segments.
type stacked struct {
	*timeline.Spans
	stack    func(i int) trace.StackID
	stream   func(i int) uint64
	pool     func(i int) int // position in the list of pools; its length if not known
	category func(i int) uint32
	name     func(i int) uint32 // by which the page asks for it
	height   func(l *timeline.Level) uint64
}

// noName is the name of what the page cannot ask for.
const noName = 1<<32 - 1

// blocks are the lives of blocks; together they are the active memory.
func (r *pageRun) blocks() *stacked {
	l := r.lives
	return &stacked{
		Spans: &l.Spans, stack: l.Stack, stream: l.Stream,
		pool:     func(i int) int { return min(l.Pool(i), len(l.Pools)) },
		category: func(i int) uint32 { return uint32(r.categories[i] & (1<<categoryBits - 1)) },
		name:     func(i int) uint32 { return uint32(i) },
		height:   func(l *timeline.Level) uint64 { return l.Active },
	}
}

// spaces are the lives of segments; together they are the reserved memory. They
// are asked for by the events that made them.
func (r *pageRun) spaces() *stacked {
	y := r.layout
	return &stacked{
		Spans:  &y.Spaces,
		stack:  func(i int) trace.StackID { return y.Space(i).Stack },
		stream: func(i int) uint64 { return y.Space(i).Stream },
		pool: func(i int) int {
			s := y.Space(i)
			if at := slices.Index(r.lives.Pools, s.Pool); at >= 0 && s.HasPool {
				return at
			}
			return len(r.lives.Pools)
		},
		category: func(int) uint32 { return uint32(slices.Index(findings.Categories(), findings.Unknown)) },
		name: func(i int) uint32 {
			if made := y.Space(i).Made; made >= 0 {
				return uint32(made)
			}
			return noName
		},
		height: func(l *timeline.Level) uint64 { return l.Reserved },
	}
}

// stacked reads what.
func (r *request) stacked() *stacked {
	if r.query.choice("what", "blocks", "segments") == "segments" {
		return r.run.spaces()
	}
	return r.run.blocks()
}
