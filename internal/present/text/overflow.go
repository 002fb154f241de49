package text

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// mostHolders is how many call sites are listed.
const mostHolders = 5

// overflow says what requests that fail would cost with host memory.
func (p *page) overflow(o *whatif.Overflow) {
	p.heading("With overflow", "")
	p.wrapped("  ", OverflowText(o))
	if o.Died {
		p.wrapped("  ", "A request failed while this was recorded. What the program would have done after it is not known: `ashlar explain` continues it as far as it can.")
	}
	if o.Frozen > 0 && o.PeakHost > 0 {
		p.wrapped("  ", fmt.Sprintf("No gradient was seen for %s of parameters: the ranges hold whether they are frozen, and so go to the host early, or not.", units.Size(o.Frozen)))
	}
	for i, h := range o.Holders {
		if i == mostHolders {
			p.printf("  and %s more\n", countText(len(o.Holders)-i))
			break
		}
		site := h.Site
		if site == "" {
			site = "no frames"
		}
		p.printf("  %10s  %s, %s\n", units.Size(h.Bytes), CategoryText(string(h.Category)), Clean(site))
	}
}

// OverflowText says in a sentence whether a run passes with host memory, and what that costs.
func OverflowText(o *whatif.Overflow) string {
	switch {
	case !o.Runs:
		return fmt.Sprintf("%s of host memory does not save the run: a request for %s fails all the same.", units.Size(o.HostBytes), units.Size(o.Failed))
	case o.PeakHost == 0 && o.Died:
		return "With expandable segments, which overflow comes with, the recorded requests need no host memory" + costText(o) + "."
	case o.PeakHost == 0:
		return "With expandable segments, which overflow comes with, the run passes without host memory" + costText(o) + "."
	}
	var held uint64
	for _, h := range o.Holders {
		held += h.Bytes
	}
	text := "The run passes"
	if o.Died {
		text = "The recorded requests are served"
	}
	text += costText(o)
	if held > 0 {
		whose := "a step"
		if o.Steps == 0 {
			whose = "the recording, in which no steps were found,"
		}
		text += fmt.Sprintf("; %s has tensors of %s in the host's memory, one after the other or at once", whose, units.Size(held))
	}
	return text + fmt.Sprintf("; the most that lies in the host's memory at any time is %s.", units.Size(o.PeakHost))
}

// costText says how much longer steps take, in a clause.
func costText(o *whatif.Overflow) (text string) {
	if s := o.ExtraSeconds; s != nil && s.High == 0 {
		return ", with steps as long as recorded"
	}
	if s := o.Slowdown; s != nil {
		text += fmt.Sprintf(", %.2f to %.2f times slower than recorded", s.Low, s.High)
	}
	if s := o.ExtraSeconds; s != nil {
		during := "a step"
		if o.Steps == 0 {
			during = "in the whole recording"
		}
		text += fmt.Sprintf(", %.0f to %.0f ms more %s", 1000*s.Low, 1000*s.High, during)
	}
	return text
}
