package run

import (
	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/replay/verify"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/snapshot/recorder"
	"github.com/ashlar-mem/ashlar/trace"
)

// MaxReplay is the number of events above which a trace is not replayed only to
// learn block sizes: it takes memory, and half a minute would be too long for a
// summary.
const MaxReplay = 5_000_000

// Run is one device of one file.
type Run struct {
	Trace *trace.Trace
	// Facts are what the recorder wrote beside the trace; nil if nothing.
	Facts *recorder.Facts
	// NoSizes leaves out the sizes of blocks, which take memory and which not every
	// answer needs.
	NoSizes bool
	// Progress is called now and then with the number of events replayed; it may
	// be nil. It and NoSizes must be set before the first part is asked for.
	Progress func(done, total int)

	start       lazy[*start.State]
	annotations lazy[*timeline.Annotations]
	outline     lazy[*timeline.Timeline]
	verified    lazy[*verify.Verified]
	history     lazy[*History]
	lifetimes   lazy[*timeline.Lifetimes]
	analysis    lazy[*findings.Analysis]
	steps       lazy[*findings.Steps]
	findings    lazy[*findings.Findings]
	indices     lazy[*Indices]
}

// New returns the run of a trace. facts may be nil.
func New(t *trace.Trace, facts *recorder.Facts) *Run {
	return &Run{
		Trace: t, Facts: facts,
		start: newLazy[*start.State](), annotations: newLazy[*timeline.Annotations](), outline: newLazy[*timeline.Timeline](),
		verified: newLazy[*verify.Verified](), history: newLazy[*History](),
		lifetimes: newLazy[*timeline.Lifetimes](), analysis: newLazy[*findings.Analysis](), steps: newLazy[*findings.Steps](), findings: newLazy[*findings.Findings](),
		indices: newLazy[*Indices](),
	}
}

// Events returns the number of events.
func (r *Run) Events() int { return r.Trace.Events.Len() }
