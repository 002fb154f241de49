package scenario

import (
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/trace"
)

// finish takes the snapshot that the trace is.
func (s *Scenario) finish() {
	if s.done {
		return
	}
	if s.oom == nil || s.config.KeepGoing {
		s.EndSteps()
	}
	s.done = true
	if n := s.config.MaxEntries; n > 0 && s.t.Events.Len() > n {
		s.t.Events = s.t.Events.Cut(s.t.Events.Len() - n)
	}
	s.t.Settings = trace.Settings{
		Known: true, Conf: s.config.Conf, Parsed: s.conf,
		Fields: trace.Extra{{Name: "PYTORCH_CUDA_ALLOC_CONF", Value: s.config.Conf}},
	}
	for _, seg := range s.a.Segments() {
		if !seg.Lost {
			out := trace.FromEngine(&seg, s.stacks)
			out.Stack = max(s.segments[seg.Address], trace.EmptyStack)
			s.t.Segments = append(s.t.Segments, out)
		}
	}
}

// intern returns a stack inside the frames of Call.
func (s *Scenario) intern(stack []string) trace.StackID {
	ids := make([]trace.FrameID, 0, len(stack)+len(s.outer))
	for _, text := range stack {
		ids = append(ids, s.frame(text))
	}
	return s.t.Stacks.Add(append(ids, s.outer...))
}

// frame reads "file.py:12 func". A text of another form is the name of a
// compiled function.
func (s *Scenario) frame(text string) trace.FrameID {
	place, name, _ := strings.Cut(text, " ")
	if colon := strings.LastIndexByte(place, ':'); colon > 0 {
		if line, err := strconv.ParseInt(place[colon+1:], 10, 64); err == nil {
			return s.t.Stacks.AddFrame(trace.Frame{Name: s.t.Strings.Add(name), File: s.t.Strings.Add(place[:colon]), Line: line})
		}
	}
	return s.t.Stacks.AddFrame(trace.Frame{Name: s.t.Strings.Add(text), File: s.t.Strings.Add("??")})
}
