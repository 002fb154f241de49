package stats

import (
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Places tells when and where in a program the events of its trace are.
type Places struct {
	first   int64 // earliest time; trace.NoTime if none is known
	program *timeline.Program
	t       *trace.Trace
}

// NewPlaces looks through a trace.
func NewPlaces(t *trace.Trace) *Places {
	p := &Places{first: trace.NoTime, program: timeline.NewProgram(t), t: t}
	for i := range t.Events.Len() {
		if at := t.Events.Time.At(i); at != trace.NoTime && (p.first == trace.NoTime || at < p.first) {
			p.first = at
		}
	}
	return p
}

// Program is the course of the program, as annotations tell it.
func (p *Places) Program() *timeline.Program { return p.program }

// Event is the place of an event; -1 stands for before the first one.
func (p *Places) Event(event int) Moment {
	time := int64(trace.NoTime)
	if event >= 0 && event < p.t.Events.Len() {
		time = p.t.Events.Time.At(event)
	}
	return p.At(event, time)
}

// At is the place of an event with a time of its own.
func (p *Places) At(event int, time int64) Moment {
	var m Moment
	if event >= 0 {
		m.Event = &event
	}
	if time == trace.NoTime {
		return m
	}
	since := time - p.first
	m.Time, m.Since = &time, &since
	at := p.program.At(time)
	if at.Step > 0 {
		m.Step = &at.Step
	}
	m.Annotation = text(at.Annotation)
	return m
}
