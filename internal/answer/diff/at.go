package diff

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/trace"
)

// At says which moment of a trace is meant.
type At struct {
	kind atKind
	n    int // of an event from 0, of a step from 1
}

type atKind int

const (
	atPeak atKind = iota
	atStart
	atEnd
	atStep
	atEvent
)

// Peak is the moment of most allocated bytes, Start the moment before the first
// event, End the state at the end.
var (
	Peak  = At{kind: atPeak}
	Start = At{kind: atStart}
	End   = At{kind: atEnd}
)

// Step returns the end of a step, from 1; Event is the moment after an event,
// from 0.
func Step(n int) At  { return At{atStep, n} }
func Event(n int) At { return At{atEvent, n} }

// ParseAt reads a moment: peak, start, end, step:N or the number of an event.
func ParseAt(s string) (At, error) {
	switch s {
	case "peak":
		return Peak, nil
	case "start":
		return Start, nil
	case "end":
		return End, nil
	}
	number, isStep := strings.CutPrefix(s, "step:")
	n, err := strconv.Atoi(strings.ReplaceAll(number, ",", ""))
	switch {
	case err != nil || n < 0:
		return At{}, fmt.Errorf("moment %q: write peak, start, end, step:N or the number of an event", s)
	case isStep && n == 0:
		return At{}, fmt.Errorf("moment %q: steps count from 1", s)
	case isStep:
		return Step(n), nil
	}
	return Event(n), nil
}

func (a At) String() string {
	switch a.kind {
	case atPeak:
		return "peak"
	case atStart:
		return "start"
	case atEnd:
		return "end"
	case atStep:
		return "step:" + strconv.Itoa(a.n)
	}
	return strconv.Itoa(a.n)
}

// find returns the event after which the moment lies; -1 is before the first.
func (a At) find(h *history) (int, error) {
	n := h.trace.Events.Len()
	if n == 0 && a.kind != atEnd {
		return 0, fmt.Errorf("there are no events, so only the end is known; take the moment end")
	}
	switch a.kind {
	case atPeak:
		return h.peak().Event, nil
	case atStart:
		return -1, nil
	case atStep:
		return a.stepEnd(h)
	case atEvent:
		if a.n >= n {
			return 0, fmt.Errorf("there is no event %s; the last one is %s", count(a.n), count(n-1))
		}
		return a.n, nil
	}
	return n - 1, nil
}

// stepEnd returns the last event of a step.
func (a At) stepEnd(h *history) (int, error) {
	steps := h.program.Steps
	switch {
	case len(steps) == 0:
		return 0, fmt.Errorf("there are no steps: neither the profiler nor an Optimizer.step marked any; use the number of an event")
	case a.n > len(steps):
		return 0, fmt.Errorf("there is no step %s; the last one is %s", count(a.n), count(len(steps)))
	case h.peaks.First == trace.NoTime:
		return 0, fmt.Errorf("the events have no times, so steps cannot be found in them; use the number of an event")
	}
	end := steps[a.n-1].End
	if end < h.peaks.First {
		return 0, fmt.Errorf("step %s ended before the first event%s", count(a.n), firstStep(steps, h.peaks.First))
	}
	last := -1
	for i := range h.trace.Events.Len() {
		if t := h.trace.Events.Time.At(i); t != trace.NoTime && t > end {
			break
		}
		last = i
	}
	return last, nil
}

// firstStep names the first step whose end lies within the events.
func firstStep(steps []timeline.Range, first int64) string {
	for i, s := range steps {
		if s.End >= first && s.End != math.MaxInt64 {
			return fmt.Sprintf("; the first one that ends within them is step:%d", i+1)
		}
	}
	return "; use the number of an event"
}

func count(n int) string { return units.Count(int64(n)) }
