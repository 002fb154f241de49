package snapshot

import (
	"cmp"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
	"github.com/ashlar-mem/ashlar/trace"
)

// engineKey is the field of a file by an engine of ours: the version whose rules it
// followed. Its events have fields that PyTorch never has together.
const engineKey = "ashlar_rules"

// FromEngine makes a snapshot of the states of allocators of this program, one
// for each device, ready for [WritePickle]. The file shows what the engine
// knows: there are no call stacks, and segments that PyTorch would have lost are
// left out, as PyTorch does.
func FromEngine(states ...alloc.Snapshot) *File {
	f := &File{Format: "pickle"}
	if len(states) > 0 {
		f.Extra = trace.Extra{{Name: engineKey, Value: cmp.Or(states[0].Version, pytorch.Default).String()}}
	}
	texts, stacks := &trace.Strings{}, trace.NewStacks()
	for i := range states {
		s := &states[i]
		conf := s.Settings.String()
		t := &trace.Trace{
			Device: s.Device, Strings: texts, Stacks: stacks, Extra: f.Extra, Writer: pytorch.Exactly(cmp.Or(s.Version, pytorch.Default)),
			Settings: trace.Settings{
				Known: true, Conf: conf, Parsed: s.Settings,
				Fields: trace.Extra{{Name: settings.Variable, Value: conf}},
			},
		}
		for j := range s.Segments {
			if g := &s.Segments[j]; !g.Lost {
				t.Segments = append(t.Segments, trace.FromEngine(g, nil))
			}
		}
		for j := range s.Events {
			appendEngine(t, &s.Events[j])
		}
		f.Traces = append(f.Traces, t)
	}
	return f
}

func appendEngine(t *trace.Trace, e *alloc.Event) {
	ev := trace.Event{
		Action: e.Action, Addr: e.Addr, Size: e.Size, Stream: e.Stream, Time: trace.NoTime,
		Stack: trace.EmptyStack, Pool: t.Events.PoolRef(e.Pool),
	}
	if e.Time != 0 {
		ev.Time = e.Time / int64(time.Microsecond)
	}
	if e.Meta != "" {
		ev.Meta = t.Strings.Add(e.Meta)
	}
	t.Events.Append(ev)
}
