package whatif

import (
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// Tensors says what a recording knows of the tensors of its program.
type Tensors struct {
	analysis *findings.Analysis
	lives    *timeline.Lifetimes
	blocks   []int // of each tensor in the lifetimes; -1 if it is not among them
}

// KnownTensors looks the tensors of a program up.
func KnownTensors(p *replay.Program, analysis *findings.Analysis, lives *timeline.Lifetimes) *Tensors {
	return &Tensors{analysis, lives, tensorBlocks(p, lives)}
}

// Category returns what a tensor is for.
func (t *Tensors) Category(tensor int) findings.Category {
	if t.blocks[tensor] < 0 {
		return findings.Unknown
	}
	c, _ := t.analysis.CategoryOf(t.lives, t.blocks[tensor])
	return c
}

// Site names the line that allocated a tensor; empty if the file has no frames for it.
func (t *Tensors) Site(tensor int) string {
	if t.blocks[tensor] < 0 {
		return ""
	}
	site, ok := timeline.SiteOf(t.lives.Trace, t.lives.Stack(t.blocks[tensor]))
	if !ok {
		return ""
	}
	return site.String()
}

// tensorBlocks returns the blocks of a program's tensors in the lifetimes; -1 if one is
// not among them.
func tensorBlocks(p *replay.Program, lives *timeline.Lifetimes) []int {
	out := make([]int, p.Tensors())
	for i := range out {
		out[i] = -1
	}
	older := make(map[uint64]int, lives.Older)
	for i := range lives.Older {
		older[lives.Address(i)] = i
	}
	tensor := 0
	for _, s := range p.Start.Segments {
		for _, b := range s.Blocks {
			if block, ok := older[b.Address]; ok && tensor < len(out) {
				out[tensor] = block
			}
			tensor++
		}
	}
	for i := range p.Len() {
		if c := p.Call(i); c.Kind == replay.CallAlloc && c.Event >= 0 {
			out[c.Tensor] = lives.BlockOf(c.Event)
		}
	}
	return out
}
