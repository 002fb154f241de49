package recorder

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
	"github.com/ashlar-mem/ashlar/trace"
)

// Key is the name of the facts among the fields of a file.
const Key = "ashlar"

// version is the last one that this package knows all fields of.
const version = 1

// maxWarnings is how many warnings are worded. A file with more is no better
// understood by reading them.
const maxWarnings = 20

// maxDevice bounds the numbers of devices, as package stats does.
const maxDevice = 1 << 16

// Read returns the facts among the extra fields of a file, nil if there are
// none.
func Read(fields trace.Extra) *Facts {
	if !fields.Has(Key) {
		return nil
	}
	r := &reader{facts: &Facts{}}
	if x, ok := fields.Get(Key).(trace.Extra); ok {
		r.read(x)
	} else {
		r.wrong(Key, fields.Get(Key), "a dictionary")
	}
	if r.more > 0 {
		r.facts.Warnings = append(r.facts.Warnings, fmt.Sprintf("%d more values under %q are not as expected", r.more, Key))
	}
	return r.facts
}

// reader reads one dictionary of facts.
type reader struct {
	facts *Facts
	more  int // warnings that are only counted
}

func (r *reader) read(x trace.Extra) {
	f := r.facts
	for _, field := range x {
		path := Key + "." + field.Name
		switch v := field.Value; field.Name {
		case "version":
			if n := r.int(path, v); n != nil {
				f.Version = *n
			}
		case "torch":
			f.Torch = r.text(path, v)
		case "cuda":
			f.CUDA = r.text(path, v)
		case "hip":
			f.HIP = r.text(path, v)
		case "reason":
			f.Reason = r.text(path, v)
		case "late":
			f.Late = r.bool(path, v)
		case "note":
			f.Note = r.text(path, v)
		case "message":
			f.Message = r.text(path, v)
		case "time_us":
			f.TimeUS = r.within(path, v, firstTimeUS, lastTimeUS, "microseconds since 1970")
		case "pid":
			f.PID = r.int(path, v)
		case "rank":
			f.Rank = r.count(path, v)
		case "run":
			f.Run = r.text(path, v)
		case "attempt":
			f.Attempt = r.count(path, v)
		case "world":
			f.World = r.count(path, v)
		case "commit":
			f.Commit = r.text(path, v)
		case "tags":
			f.Tags = r.tags(path, v)
		case "device":
			f.Device = r.device(path, v)
		case "step":
			f.Step = r.int(path, v)
		case "steps":
			f.Steps = r.steps(path, v)
		case "request_bytes":
			f.RequestBytes = r.size(path, v)
		case "segment_bytes":
			f.SegmentBytes = r.size(path, v)
		case "device_free_bytes":
			f.DeviceFreeBytes = r.size(path, v)
		case "limit_bytes":
			f.LimitBytes = r.size(path, v)
		case "limit_known":
			f.LimitKnown = r.bool(path, v)
		case "ooms":
			f.OOMs = r.int(path, v)
		case "max_entries":
			f.MaxEntries = r.int(path, v)
		case "settings":
			f.Settings = r.settings(path, v)
		case "memory_stats":
			f.MemoryStats = r.memoryStats(path, v)
		case "devices":
			f.Devices = r.devices(path, v)
		default:
			f.Extra = append(f.Extra, field)
		}
	}
	f.LimitKnown = f.LimitKnown || f.LimitBytes != nil
	if f.Version > version {
		r.warn("%q is of version %d, and this program knows version %d: update it to read all", Key, f.Version, version)
	}
}

// steps reads pairs of a number and a time, and sorts them by time: clocks may
// be set back.
func (r *reader) steps(path string, v any) []StepMark {
	var marks []StepMark
	for i, item := range r.list(path, v) {
		at := fmt.Sprintf("%s[%d]", path, i)
		pair, ok := item.(trace.List)
		if !ok || len(pair) != 2 {
			r.wrong(at, item, "a pair of numbers")
			continue
		}
		n, time := r.int(at+"[0]", pair[0]), r.int(at+"[1]", pair[1])
		if n != nil && time != nil {
			marks = append(marks, StepMark{*n, *time})
		}
	}
	slices.SortStableFunc(marks, func(a, b StepMark) int {
		switch {
		case a.TimeUS < b.TimeUS:
			return -1
		case a.TimeUS > b.TimeUS:
			return 1
		}
		return 0
	})
	return marks
}

// tags reads a dictionary of texts.
func (r *reader) tags(path string, v any) map[string]string {
	out := map[string]string{}
	for _, field := range r.dict(path, v) {
		if text, ok := field.Value.(string); ok {
			out[field.Name] = text
		} else {
			r.wrong(under(path, field.Name), field.Value, "a text")
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// settings reads variables in the order in which PyTorch looks at them.
func (r *reader) settings(path string, v any) []Variable {
	var out []Variable
	for _, field := range r.dict(path, v) {
		text, ok := field.Value.(string)
		if !ok {
			r.wrong(under(path, field.Name), field.Value, "a text")
			continue
		}
		out = append(out, Variable{field.Name, text})
	}
	place := func(name string) int {
		if i := slices.Index(settings.Variables[:], name); i >= 0 {
			return i
		}
		return len(settings.Variables)
	}
	slices.SortStableFunc(out, func(a, b Variable) int { return place(a.Name) - place(b.Name) })
	return out
}

func (r *reader) memoryStats(path string, v any) map[int]*stats.Dump {
	all := map[int]*stats.Dump{}
	for _, field := range r.dict(path, v) {
		at := under(path, field.Name)
		device, err := strconv.Atoi(field.Name)
		if err != nil || device < 0 || device >= maxDevice {
			r.warn("%s: this is no number of a device; it is left out", at)
			continue
		}
		values := map[string]int64{}
		for _, value := range r.dict(at, field.Value) {
			if n := r.int(under(at, value.Name), value.Value); n != nil {
				values[value.Name] = *n
			}
		}
		if len(values) > 0 {
			all[device] = stats.FromValues(device, values)
		}
	}
	return all
}

func (r *reader) devices(path string, v any) []Device {
	var out []Device
	for i, item := range r.list(path, v) {
		at := fmt.Sprintf("%s[%d]", path, i)
		fields := r.dict(at, item)
		index := r.device(at+".index", fields.Get("index"))
		if index == nil {
			r.warn("%s has no index; it is left out", at)
			continue
		}
		d := Device{
			Index:       *index,
			Name:        r.text(at+".name", fields.Get("name")),
			Capability:  r.text(at+".capability", fields.Get("capability")),
			TotalMemory: r.size(at+".total_memory", fields.Get("total_memory")),
			FreeBytes:   r.size(at+".free_bytes", fields.Get("free_bytes")),
			TotalBytes:  r.size(at+".total_bytes", fields.Get("total_bytes")),
			LimitBytes:  r.size(at+".limit_bytes", fields.Get("limit_bytes")),
			LimitKnown:  r.bool(at+".limit_known", fields.Get("limit_known")),
		}
		d.LimitKnown = d.LimitKnown || d.LimitBytes != nil
		out = append(out, d)
	}
	return out
}

// Readers of one type each. nil, which is Python's None, stands for a missing value.

func (r *reader) text(path string, v any) string {
	s, ok := v.(string)
	if !ok && v != nil {
		r.wrong(path, v, "a text")
	}
	return s
}

func (r *reader) bool(path string, v any) bool {
	x, ok := v.(bool)
	if !ok && v != nil {
		r.wrong(path, v, "true or false")
	}
	return x
}

func (r *reader) int(path string, v any) *int64 {
	n, ok := v.(int64)
	if !ok {
		if v != nil {
			r.wrong(path, v, "a whole number of 64 bits")
		}
		return nil
	}
	return &n
}

// The times at which a file may have been written: the years 2000 to 2200.
const (
	firstTimeUS = 946_684_800_000_000
	lastTimeUS  = 7_258_118_400_000_000
)

// count reads a number of things, none of which there are billions of.
func (r *reader) count(path string, v any) *int64 {
	return r.within(path, v, 0, math.MaxInt32, "a number from 0 to 2147483647")
}

func (r *reader) within(path string, v any, least, most int64, want string) *int64 {
	n := r.int(path, v)
	if n != nil && (*n < least || *n > most) {
		r.wrong(path, v, want)
		return nil
	}
	return n
}

func (r *reader) size(path string, v any) *uint64 {
	switch n := v.(type) {
	case nil:
		return nil
	case uint64:
		return &n
	case int64:
		if n >= 0 {
			size := uint64(n)
			return &size
		}
	}
	r.wrong(path, v, "a number of bytes")
	return nil
}

func (r *reader) device(path string, v any) *int {
	n, ok := v.(int64)
	if !ok || n < 0 || n >= maxDevice {
		if v != nil {
			r.wrong(path, v, "the number of a device")
		}
		return nil
	}
	device := int(n)
	return &device
}

func (r *reader) dict(path string, v any) trace.Extra {
	x, ok := v.(trace.Extra)
	if !ok && v != nil {
		r.wrong(path, v, "a dictionary")
	}
	return x
}

func (r *reader) list(path string, v any) trace.List {
	x, ok := v.(trace.List)
	if !ok && v != nil {
		r.wrong(path, v, "a list")
	}
	return x
}

// under names an item of a dictionary whose names may be anything.
func under(path, name string) string {
	const longest = 60
	if len(name) > longest {
		name = name[:longest] + "..."
	}
	return path + "[" + strconv.Quote(name) + "]"
}

func (r *reader) wrong(path string, v any, want string) {
	r.warn("%s is %s, not %s; it is left out", path, describe(v), want)
}

func (r *reader) warn(format string, args ...any) {
	if len(r.facts.Warnings) == maxWarnings {
		r.more++
		return
	}
	r.facts.Warnings = append(r.facts.Warnings, fmt.Sprintf(format, args...))
}

// describe words a value in a few letters.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case bool, int64, uint64:
		return fmt.Sprint(v)
	case float64:
		if math.IsNaN(v) {
			return "not a number"
		}
		return "the fraction " + strconv.FormatFloat(v, 'g', 6, 64)
	case *big.Int:
		return "a number of " + strconv.Itoa(v.BitLen()) + " bits"
	case string:
		return "a text"
	case trace.List:
		return "a list of " + strconv.Itoa(len(v))
	case trace.Extra:
		return "a dictionary"
	}
	return fmt.Sprintf("a %T", v)
}
