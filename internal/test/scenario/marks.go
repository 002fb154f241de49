package scenario

import (
	"strconv"

	"github.com/ashlar-mem/ashlar/trace"
)

// Step ends the running step and begins step n.
func (s *Scenario) Step(n int) {
	if s.done || s.err != nil {
		return
	}
	switch s.config.Steps {
	case Annotated:
		s.endStep()
		s.now += Tick
		s.step = s.t.Strings.Add("ProfilerStep#" + strconv.Itoa(n))
		s.annotate(true, s.step)
	case Metadata:
		s.meta = s.t.Strings.Add(stepText(n))
	}
}

// EndSteps ends the running step; what follows belongs to none.
func (s *Scenario) EndSteps() {
	if !s.done && s.err == nil {
		s.endStep()
		s.meta = trace.NoString
	}
}

func (s *Scenario) endStep() {
	if s.step != trace.NoString {
		s.now += Tick
		s.annotate(false, s.step)
		s.step = trace.NoString
	}
}

// Mark runs a part of the program as a named range.
func (s *Scenario) Mark(name string, body func()) {
	id := s.t.Strings.Add(name)
	s.mark(true, id)
	body()
	s.mark(false, id)
}

func (s *Scenario) mark(begins bool, name trace.StringID) {
	if !s.done && s.err == nil {
		s.now += Tick
		s.annotate(begins, name)
	}
}

func (s *Scenario) annotate(begins bool, name trace.StringID) {
	s.t.Annotations = append(s.t.Annotations, trace.Annotation{Begin: begins, Name: name, Device: s.config.Device, Time: s.now})
}

// Wait lets time pass, in microseconds.
func (s *Scenario) Wait(us int64) { s.now += us }

// Call runs a part of the program inside one more frame: every stack in there
// has it outside of its own frames.
func (s *Scenario) Call(frame string, body func()) {
	old := s.outer
	s.outer = append([]trace.FrameID{s.frame(frame)}, old...)
	body()
	s.outer = old
}

// Record starts the recording here: what happened before is not in the trace,
// and blocks allocated before have no stack.
func (s *Scenario) Record() {
	if s.done {
		return
	}
	s.t.Events = trace.Events{}
	s.t.Annotations = nil
	for addr := range s.stacks {
		s.stacks[addr] = trace.EmptyStack
	}
	for addr := range s.segments {
		s.segments[addr] = trace.EmptyStack
	}
}
