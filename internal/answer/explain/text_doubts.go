package explain

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/units"
)

// doubt remembers numbers that are not taken as fact.
func (a *textEvidence) doubt(format string, args ...any) {
	a.doubts = append(a.doubts, fmt.Sprintf(format, args...))
}

// sayDoubts puts the doubts before everything else: what follows rests on the
// other numbers alone.
func (a *textEvidence) sayDoubts() {
	if len(a.doubts) == 0 {
		return
	}
	r := a.report
	if r.Confidence == Certain {
		r.Confidence = Likely
	}
	r.Summary = "The numbers of the text cannot all be true: " + strings.Join(a.doubts, "; ") + ". " + r.Summary
}

// sane drops sizes that no PyTorch prints.
func (a *textEvidence) sane() {
	if a.Message == nil || len(a.Message.Absurd) == 0 {
		return
	}
	const most = 60 // characters: enough to find it in the text
	for _, phrase := range a.Message.Absurd {
		if len(phrase) > most {
			phrase = phrase[:most]
		}
		a.doubt("%q is more than any device has", phrase)
	}
	o := *a.Message
	const absurd = 1 << 60 // see message.OOM.Absurd
	for _, p := range []**units.Range{
		&o.TriedBytes, &o.TotalBytes, &o.FreeBytes, &o.LimitBytes, &o.AllocatedBytes, &o.ActiveBytes,
		&o.ReservedBytes, &o.ReservedUnallocatedBytes, &o.PrivatePoolBytes, &o.OtherBytes,
	} {
		if *p != nil && (*p).Low >= absurd {
			*p = nil
		}
	}
	a.Message, a.contradicted = &o, true
}

// contradictions drops numbers that cannot be true together.
func (a *textEvidence) contradictions() {
	if a.live != nil && a.reserved != nil && a.reserved.High < a.live.Low {
		a.doubt("%s reserved cannot hold %s allocated", units.Size(a.reserved.Mid), units.Size(a.live.Mid))
		a.reserved, a.unused = nil, nil
	}
	if a.free != nil && a.total != nil && a.free.Low > a.total.High {
		a.doubt("%s free on a device of %s", units.Size(a.free.Mid), units.Size(a.total.Mid))
		a.free, a.total, a.contradicted = nil, nil, true
	}
	held, what := a.reserved, "reserved"
	if held == nil {
		held, what = a.live, "allocated"
	}
	// A driver lends memory of the host only when that of the device is used up.
	if held != nil && a.total != nil && held.Low > a.total.High && (a.free == nil || a.free.Low > 0) {
		free := ""
		if a.free != nil {
			free = fmt.Sprintf(" with %s free", units.Size(a.free.Mid))
		}
		a.doubt("%s %s on a device of %s%s", units.Size(held.Mid), what, units.Size(a.total.Mid), free)
		a.free, a.total, a.contradicted = nil, nil, true
	}
}
