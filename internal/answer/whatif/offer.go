package whatif

import (
	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// The values of [Result.After].
const (
	AfterNothing = "now"
	AfterUpgrade = "after_upgrade"
	AfterNever   = "never"
)

// offer says whether what wrote a trace takes the settings of a result.
func (r *Result) offer(t *trace.Trace, s settings.Settings) {
	of := answer.AllocatorOf(t)
	use, needs := of.Takes(s)
	r.Export, r.Needs = of.Export(s), needs
	r.After = map[answer.Use]string{answer.Now: AfterNothing, answer.Later: AfterUpgrade, answer.Never: AfterNever}[use]
}
