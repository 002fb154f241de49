package plancompare

import (
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
)

// Span is a phase as both sides have it. The loss is a part of the forward
// pass: a recording does not say where it begins.
type Span struct {
	Label       string // build, forward0, backward0, optimizer0, ... prefill, decode0, ...
	First, Last int    // events First to Last-1
}

// Spans cuts a ledger into phases. Steps count from 0 in labels, as the marks
// of the recordings do.
func Spans(l *ledger.Ledger) []Span {
	var out []Span
	for _, p := range l.Phases {
		name := p.Name
		if name == "loss" {
			name = "forward"
		}
		if p.Step > 0 && name != "build" && name != "prefill" {
			name += strconv.Itoa(p.Step - 1)
		}
		if n := len(out); n > 0 {
			if out[n-1].Label == name {
				continue
			}
			out[n-1].Last = p.First
		}
		out = append(out, Span{Label: name, First: p.First, Last: len(l.Events)})
	}
	if len(out) == 0 || out[0].First > 0 {
		first := Span{Label: "build", Last: len(l.Events)}
		if len(out) > 0 {
			first.Last = out[0].First
		}
		out = append([]Span{first}, out...)
	}
	return out
}
