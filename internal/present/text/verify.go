package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Verified says how far one file is reproduced, and where it differs first.
func Verified(w io.Writer, name string, r *replay.Result, style Style) error {
	p := &page{w: w, style: style}
	var b strings.Builder
	switch {
	case r.Identical && r.Events == 0 && r.Kind != "recording":
		fmt.Fprintf(&b, "nothing to replay: no events, %s as recorded", plural(r.Segments, "segment", "segments"))
	case r.Identical && r.Kind == "recording":
		fmt.Fprintf(&b, "identical: %s events, %s checkpoints, %s segments", countText(r.Events), countText(r.Checkpoints), countText(r.Segments))
	case r.Identical && !r.SegmentsIdentical:
		fmt.Fprintf(&b, "identical: %s events, start %s, limit %s", countText(r.Events), r.Start, verifiedLimit(r.Limit))
	case r.Identical:
		fmt.Fprintf(&b, "identical: %s events, %s segments, start %s, limit %s", countText(r.Events), countText(r.Segments), r.Start, verifiedLimit(r.Limit))
	default:
		verdict := "different"
		if r.First.Kind == replay.DiffUndefined || r.First.Kind == replay.DiffException {
			verdict = "not comparable"
		}
		fmt.Fprintf(&b, "%s: %s of %s events identical", verdict, countText(r.IdenticalEvents), countText(r.Events))
	}
	fmt.Fprintf(&b, ", %v", replay.NewPyTorch(r.Writer, r.Version))
	p.verified(name, b.String(), r.Identical)
	if !r.Identical {
		for line := range strings.Lines(r.First.String()) {
			p.fitted("  ", strings.TrimSuffix(line, "\n"))
		}
	}
	for _, n := range r.Notes {
		p.row("  note: ", n)
	}
	return p.err
}

// verified writes the line of a file; on a terminal what does not fit beside its
// name goes below it.
func (p *page) verified(name, said string, identical bool) {
	verdict, rest, _ := strings.Cut(said, ":")
	dress := p.style.Good
	if !identical {
		dress = p.style.Bad
	}
	lead := Clean(name) + ": "
	if p.style.Width > 0 && width(lead+said) > p.columns() {
		p.name("", name+":")
		lead = "  "
	}
	p.dressed(lead, verdict, dress, ":", rest)
}

// verifiedLimit says what is known about the cap on reserved memory.
func verifiedLimit(l *replay.Limit) string {
	if l.Max == 0 {
		return "none reached"
	}
	return units.Size(l.Min) + " to " + units.Size(l.Max)
}
