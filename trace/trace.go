package trace

import (
	"strings"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/settings/pytorch"
)

// The values of [Trace.Platform]: what a trace was recorded on if that was not
// CUDA. A trace of the profiler was made by torch.cuda._memory_viz.profile_plot
// from tensors that torch.profiler saw; no allocator wrote it.
const (
	ROCm     = "ROCm"
	XPU      = "XPU"
	NPU      = "NPU"
	Profiler = "profiler"
)

// Trace is the memory history of one device and the state it ended in.
type Trace struct {
	Device  int
	Host    bool // pinned host memory instead of a device
	Strings *Strings
	Stacks  *Stacks

	Events      Events
	Segments    []Segment // at the end, by address
	Partial     bool      // the file ends within the events: Segments are not the state after the last one
	Annotations []Annotation

	Settings Settings
	Writer   pytorch.Range // the versions of PyTorch that may have written the file
	Platform string        // ROCm, XPU, NPU or Profiler; empty for CUDA, and where nothing shows it
	Extra    Extra         // further fields of the file
}

// Hinted reports whether an event belongs to an allocation at a given address, which
// PyTorch makes from 2.13 on (mallocWithAddress). It may come with an artificial
// pair: the bytes before it are allocated first and freed afterwards.
func (t *Trace) Hinted(i int) bool {
	meta := t.Events.Meta.At(i)
	return meta != NoString && strings.HasSuffix(t.Strings.Text(meta), "mallocWithAddress")
}

// Annotation is the begin or the end of a named range of the program.
type Annotation struct {
	Begin  bool // stage START, otherwise END
	Name   StringID
	Device int
	Time   int64
	Extra  Extra
}

// Settings are the allocator settings that a file shows.
type Settings struct {
	Known  bool   // the file has them
	Conf   string // the text of PYTORCH_CUDA_ALLOC_CONF
	Parsed settings.Settings
	Fields Extra // the whole dictionary
}

// Extra holds fields that have no place of their own, in the order of the
// file. Values are nil, bool, int64, uint64, *big.Int, float64, string, List or Extra.
type Extra []Field

// Field is a named value.
type Field struct {
	Name  string
	Value any
}

// List is a list or a tuple of values.
type List []any

// Get returns the value of a field, or nil.
func (x Extra) Get(name string) any {
	for _, f := range x {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Has reports whether there is a field of that name.
func (x Extra) Has(name string) bool {
	for _, f := range x {
		if f.Name == name {
			return true
		}
	}
	return false
}
