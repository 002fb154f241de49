package text

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Verified says how far one file is reproduced, and where it differs first.
func Verified(name string, r *replay.Result) string {
	var b strings.Builder
	switch {
	case r.Identical && r.Kind == "recording":
		fmt.Fprintf(&b, "%s: identical: %s events, %s checkpoints, %s segments", name, countText(r.Events), countText(r.Checkpoints), countText(r.Segments))
	case r.Identical && !r.SegmentsIdentical:
		fmt.Fprintf(&b, "%s: identical: %s events, start %s, limit %s", name, countText(r.Events), r.Start, verifiedLimit(r.Limit))
	case r.Identical:
		fmt.Fprintf(&b, "%s: identical: %s events, %s segments, start %s, limit %s", name, countText(r.Events), countText(r.Segments), r.Start, verifiedLimit(r.Limit))
	default:
		verdict := "different"
		if r.First.Kind == replay.DiffUndefined || r.First.Kind == replay.DiffException {
			verdict = "not comparable"
		}
		fmt.Fprintf(&b, "%s: %s: %s of %s events identical", name, verdict, countText(r.IdenticalEvents), countText(r.Events))
		for line := range strings.Lines(r.First.String()) {
			b.WriteString("\n  " + strings.TrimSuffix(line, "\n"))
		}
	}
	for _, n := range r.Notes {
		b.WriteString("\n  note: " + n)
	}
	return b.String()
}

// verifiedLimit says what is known about the cap on reserved memory.
func verifiedLimit(l *replay.Limit) string {
	if l.Max == 0 {
		return "none reached"
	}
	return units.Size(l.Min) + " to " + units.Size(l.Max)
}
