package snapshot

import (
	"bytes"
	"errors"
	"iter"
	"path/filepath"
	"testing"

	"github.com/ashlar-mem/ashlar/trace"
)

// streamOf shows a file as a stream.
func streamOf(f *File) *Stream {
	first := f.Traces[0]
	s := &Stream{
		Strings: first.Strings, Stacks: first.Stacks, Settings: first.Settings,
		Segments: func(yield func(int, *trace.Segment) bool) {
			for _, t := range f.Traces {
				for i := range t.Segments {
					if !yield(t.Device, &t.Segments[i]) {
						return
					}
				}
			}
		},
		Annotations: func(yield func(trace.Annotation) bool) {
			for _, a := range first.Annotations {
				if !yield(a) {
					return
				}
			}
		},
	}
	for _, t := range f.Traces {
		s.Traces = append(s.Traces, streamEvents(t))
	}
	return s
}

func streamEvents(t *trace.Trace) iter.Seq[StreamEvent] {
	return func(yield func(StreamEvent) bool) {
		for i := range t.Events.Len() {
			e := t.Events.At(i)
			same := i > 0 && i%2 == 1 && e.Stack == t.Events.Stack.At(i-1)
			if !yield(StreamEvent{e, same}) {
				return
			}
		}
	}
}

// A stream of a file's contents is read as the same file.
func TestStream(t *testing.T) {
	for _, name := range []string{"snapshots/streams_graphs-tight-default", "variety/profiler", "variety/nocontext", "variety/stateonly", "variety/cppstacks"} {
		f, err := Open(t.Context(), filepath.Join("..", "testdata", name+".pickle.gz"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if err := WriteStream(&buf, streamOf(f)); err != nil {
			t.Fatal(err)
		}
		got, err := Read(t.Context(), name, &buf, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if asJSON(t, got) != asJSON(t, f) {
			t.Errorf("%s: the stream is another file", name)
		}
	}
}

// Each call has a stack of its own, as in the files of PyTorch.
func TestStreamStacks(t *testing.T) {
	s := &Stream{
		Strings: &trace.Strings{}, Stacks: trace.NewStacks(),
		Segments:    func(func(int, *trace.Segment) bool) {},
		Annotations: func(func(trace.Annotation) bool) {},
	}
	frame := s.Stacks.AddFrame(trace.Frame{Name: s.Strings.Add("step"), File: s.Strings.Add("a.py"), Line: 1})
	stack := s.Stacks.Add([]trace.FrameID{frame, frame})
	s.Traces = append(s.Traces, func(yield func(StreamEvent) bool) {
		for _, same := range []bool{false, true, true, false, true} {
			yield(StreamEvent{trace.Event{Stack: stack, Time: trace.NoTime}, same})
		}
	})
	var buf bytes.Buffer
	if err := WriteStream(&buf, s); err != nil {
		t.Fatal(err)
	}
	// ] is a list, with its memo entry: segments, traces, the trace, two
	// stacks, annotations.
	if n := bytes.Count(buf.Bytes(), []byte("]\x94(")); n != 6 {
		t.Errorf("%d lists", n)
	}
	if n := bytes.Count(buf.Bytes(), []byte("a.py")); n != 1 {
		t.Errorf("the frame is written %d times", n)
	}
}

// A writer that fails ends the work.
func TestStreamFails(t *testing.T) {
	full := errors.New("disk full")
	events := 0
	s := &Stream{
		Strings: &trace.Strings{}, Stacks: trace.NewStacks(),
		Segments:    func(func(int, *trace.Segment) bool) {},
		Annotations: func(func(trace.Annotation) bool) {},
	}
	s.Traces = append(s.Traces, func(yield func(StreamEvent) bool) {
		for yield(StreamEvent{}) {
			events++
		}
	})
	w := writerFunc(func(p []byte) (int, error) {
		if events > 0 {
			return 0, full
		}
		return len(p), nil
	})
	if err := WriteStream(w, s); !errors.Is(err, full) || events > 1<<16 {
		t.Errorf("%v after %d events", err, events)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
