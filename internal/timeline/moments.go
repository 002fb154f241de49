package timeline

import "github.com/ashlar-mem/ashlar/trace"

// Moment is a place in a trace: the event, its time, and where in the program
// that is.
type Moment struct {
	Event      *int    `json:"event"` // nil: before the first one
	Time       *int64  `json:"time_us"`
	Since      *int64  `json:"since_start_us"`
	Step       *int    `json:"step"`
	Annotation *string `json:"annotation"`
}

// Moments finds when and where in a program the events of its trace are.
type Moments struct {
	trace       *trace.Trace
	annotations *Annotations
	first       int64 // earliest time; trace.NoTime if none is known
}

// NewMoments returns the moments of a trace; first is the time of its earliest
// event, as in [Peaks].First.
func NewMoments(t *trace.Trace, a *Annotations, first int64) *Moments {
	return &Moments{trace: t, annotations: a, first: first}
}

// Event returns the moment of an event; -1 is before the first.
func (m *Moments) Event(event int) Moment {
	time := int64(trace.NoTime)
	if event >= 0 && event < m.trace.Events.Len() {
		time = m.trace.Events.Time.At(event)
	}
	return m.At(event, time)
}

// At returns the moment of an event with a time of its own.
func (m *Moments) At(event int, time int64) Moment {
	var out Moment
	if event >= 0 {
		out.Event = &event
	}
	if time == trace.NoTime {
		return out
	}
	since := time - m.first
	out.Time, out.Since = &time, &since
	at := m.annotations.At(time)
	if at.Step > 0 {
		out.Step = &at.Step
	}
	if at.Annotation != "" {
		out.Annotation = &at.Annotation
	}
	return out
}
