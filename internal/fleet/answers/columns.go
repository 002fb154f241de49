package answers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/spelling"
)

// Kind is what the values of a column are.
type Kind string

// The kinds of columns.
const (
	Text     Kind = "text"
	Count    Kind = "count"
	Bytes    Kind = "bytes"
	Time     Kind = "time"     // microseconds since the Unix epoch
	Duration Kind = "duration" // microseconds
	Bool     Kind = "bool"     // 0 or 1
)

// Column is a column of the table of all files.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// About says what it is, for the documentation.
	About string `json:"-"`

	value func(e *Entry, nowUS int64) Value
}

// Value is a value of a column: a text, or a number of any other kind. The zero
// Value is not known.
type Value struct {
	Known bool
	N     int64
	Text  string
}

func textValue(s string) Value { return Value{Known: s != "", Text: s} }

func numberValue[T int | int64 | uint64](n *T) Value {
	if n == nil {
		return Value{}
	}
	return Value{Known: true, N: int64(*n)}
}

func boolValue(b bool) Value {
	if b {
		return Value{Known: true, N: 1}
	}
	return Value{Known: true}
}

func textColumn(name, about string, of func(e *Entry) string) Column {
	return Column{name, Text, about, func(e *Entry, _ int64) Value { return textValue(of(e)) }}
}

func bytesColumn(name, about string, of func(s *Summary) *uint64) Column {
	return Column{name, Bytes, about, func(e *Entry, _ int64) Value { return numberValue(of(&e.Summary)) }}
}

// Columns are those of every file. Beside them tag.KEY is the value of a tag.
var Columns = []Column{
	textColumn("hash", "SHA-256 of the file", func(e *Entry) string { return e.Hash }),
	textColumn("file", "its name when it was added", func(e *Entry) string { return e.File }),
	textColumn("kind", "`snapshot`, `memory_stats`, `oom_message` or `library_error`", func(e *Entry) string { return string(e.Summary.Kind) }),
	textColumn("run", "name of the run", func(e *Entry) string { return e.Run }),
	{"attempt", Count, "restart of the run", func(e *Entry, _ int64) Value { return numberValue(e.Attempt) }},
	{"rank", Count, "rank that wrote it", func(e *Entry, _ int64) Value { return numberValue(e.Rank) }},
	{"world", Count, "how many ranks the run has", func(e *Entry, _ int64) Value { return numberValue(e.World) }},
	textColumn("commit", "commit of the program", func(e *Entry) string { return e.Commit }),
	textColumn("host", "machine that wrote it", func(e *Entry) string { return e.Host }),
	{"device", Count, "number of the GPU", func(e *Entry, _ int64) Value { return numberValue(e.Summary.Device) }},
	textColumn("pytorch", "versions that may have written it", func(e *Entry) string { return e.Summary.PyTorch }),
	{"settings", Text, "settings of the allocator that it names", func(e *Entry, _ int64) Value {
		if e.Summary.Settings == nil {
			return Value{}
		}
		return textValue(*e.Summary.Settings)
	}},
	{"written_us", Time, "when it was written by the clock of its host: as the recorder says, else the time of its last event", func(e *Entry, _ int64) Value {
		return numberValue(e.Summary.WrittenUS)
	}},
	{"first_seen_us", Time, "when the fleet got it", func(e *Entry, _ int64) Value { return Value{Known: true, N: e.FirstSeenUS} }},
	{"age", Duration, "time since it was written, else since the fleet got it", func(e *Entry, nowUS int64) Value {
		return Value{Known: true, N: nowUS - e.TimeUS()}
	}},
	{"events", Count, "events of the device", func(e *Entry, _ int64) Value { return numberValue(&e.Summary.Events) }},
	{"oom_events", Count, "requests that failed", func(e *Entry, _ int64) Value { return numberValue(&e.Summary.OOMs) }},
	{"partial", Bool, "it ends within its events: peaks are at least these", func(e *Entry, _ int64) Value { return boolValue(e.Summary.Partial) }},
	bytesColumn("peak_allocated_bytes", "most that was in tensors, by block sizes", func(s *Summary) *uint64 { return s.PeakAllocated }),
	bytesColumn("peak_reserved_bytes", "most that was reserved", func(s *Summary) *uint64 { return s.PeakReserved }),
	bytesColumn("peak_requested_bytes", "most that was requested", func(s *Summary) *uint64 { return s.PeakRequested }),
	bytesColumn("fragmentation_bytes", "peak reserved less peak allocated", func(s *Summary) *uint64 {
		if s.PeakReserved == nil || s.PeakAllocated == nil || s.Partial {
			return nil
		}
		lost := *s.PeakReserved - min(*s.PeakReserved, *s.PeakAllocated)
		return &lost
	}),
	bytesColumn("allocated_bytes", "in tensors at the end", func(s *Summary) *uint64 { return s.Allocated }),
	bytesColumn("reserved_bytes", "reserved at the end", func(s *Summary) *uint64 { return s.Reserved }),
	{"failed", Bool, "a request failed", func(e *Entry, _ int64) Value { return boolValue(e.Failed()) }},
	textColumn("cause", "cause that `explain` finds: `leak`, `capacity`, `fragmentation` ..., `none`", func(e *Entry) string { return e.Summary.Cause }),
	textColumn("trigger", "why the request failed just then", func(e *Entry) string { return e.Summary.Trigger }),
	textColumn("confidence", "how sure the cause is: `certain`, `likely` or `open`", func(e *Entry) string { return e.Summary.Confidence }),
	textColumn("line", "line of your code that the cause shows at", func(e *Entry) string { return e.Summary.Line }),
	bytesColumn("request_bytes", "request that failed", func(s *Summary) *uint64 { return s.Request }),
	bytesColumn("limit_bytes", "limit on reserved memory, at most", func(s *Summary) *uint64 { return s.Limit }),
	textColumn("fix", "first fix that serves the failed request: its settings, else its kind", firstFix),
	textColumn("error", "why it was refused, set aside or could not be explained", func(e *Entry) string { return e.Error }),
}

// firstFix names the fix that explain puts first of those that pass.
func firstFix(e *Entry) string {
	for _, f := range e.Summary.Fixes {
		switch {
		case f.Passes && f.Settings != "":
			return f.Settings
		case f.Passes:
			return f.Kind
		}
	}
	return ""
}

// tagPrefix begins the name of a column of tags.
const tagPrefix = "tag."

// findColumn returns the column of a name.
func findColumn(name string) (*Column, error) {
	if key, ok := strings.CutPrefix(name, tagPrefix); ok && key != "" {
		c := textColumn(name, "", func(e *Entry) string { return e.Tags[key] })
		return &c, nil
	}
	for i := range Columns {
		if Columns[i].Name == name {
			return &Columns[i], nil
		}
	}
	names := columnNames()
	return nil, fmt.Errorf("there is no column %q%s; there are %s and tag.KEY", name, spelling.DidYouMean(name, names), strings.Join(names, ", "))
}

func columnNames() []string {
	out := make([]string, len(Columns))
	for i := range Columns {
		out[i] = Columns[i].Name
	}
	return slices.Clip(out)
}
