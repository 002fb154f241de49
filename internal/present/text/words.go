package text

import (
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/answer/stats"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// The words here are shared by the text and by the report of package html,
// so that both say the same.

// Row is a number and what it means.
type Row struct {
	Mark  string  // a sign before it, or a short name
	Value string  // as it is written
	Bytes *uint64 // behind Value; nil if it is no size
	Text  string
}

// sizeRow returns a row with a size; none if there is no number.
func sizeRow(rows []Row, mark string, n *uint64, text string) []Row {
	if n == nil {
		return rows
	}
	return append(rows, Row{Mark: mark, Value: units.Size(*n), Bytes: n, Text: text})
}

// Sum goes through the numbers of a failed request, from what is live to what
// is left; empty if they are not known.
func Sum(r *explain.Report) []Row {
	v := &r.Evidence
	if r.Failure == nil || v.Live == nil || v.Rounded == nil {
		return nil
	}
	var rows []Row
	add := func(mark string, n *uint64, text string) { rows = sizeRow(rows, mark, n, text) }
	need := *v.Live + *v.Rounded
	add("", v.Live, "allocated")
	add("+", v.Rounded, "request"+roundedText(v))
	add("=", &need, "needed")
	add("", v.Available, "available: "+thereText(r))
	add("-", v.Gap, "missing")
	if v.Free != nil && v.LargestFree != nil {
		add("", v.Free, fmt.Sprintf("reserved and free; largest piece %s%s", units.Size(*v.LargestFree), usableText(v)))
	}
	if v.Available != nil && v.Reserved != nil && *v.Available >= *v.Reserved && v.Segment != nil {
		rest := *v.Available - *v.Reserved
		add("", &rest, restText(r, rest)+units.Size(*v.Segment))
	}
	if v.Pending != nil && *v.Pending > 0 {
		add("", v.Pending, "freed, but waiting for another stream (pending)")
	}
	if v.FreePools != nil && *v.FreePools > 0 {
		add("", v.FreePools, "free in private pools (CUDA graphs, MemPools)")
	}
	add("", v.External, "of the device not owned by PyTorch")
	return rows
}

// restText says what the memory that is not reserved is good for. Where the limit
// is a range, the most that it can be is a byte less than what was refused.
func restText(r *explain.Report, rest uint64) string {
	l := r.Limit
	said := "not reserved yet"
	if l.Source == whatif.Inferred && l.Min != nil && l.Max != nil && *l.Min < *l.Max && *r.Evidence.Available == *l.Max {
		said = "not reserved yet, if the limit was at the upper end of its range"
	}
	switch segment := *r.Evidence.Segment; {
	case rest >= segment:
		return said + ": enough for a new segment of "
	case units.Size(rest) == units.Size(segment):
		return said + ": just too little for a new segment of "
	}
	return said + ": too little for a new segment of "
}

func roundedText(v *explain.Evidence) string {
	if v.Request == nil || units.Size(*v.Request) == units.Size(*v.Rounded) {
		return ""
	}
	return ", rounded up from " + units.Size(*v.Request)
}

func usableText(v *explain.Evidence) string {
	if v.FreeUsable == nil || v.LargestUsable == nil || units.Size(*v.LargestUsable) == units.Size(*v.LargestFree) {
		return ""
	}
	return fmt.Sprintf("; %s of it in the request's pool and stream, largest piece %s", units.Size(*v.FreeUsable), units.Size(*v.LargestUsable))
}

// thereText says what decides how much there is.
func thereText(r *explain.Report) string {
	l, v := r.Limit, r.Evidence
	if l.Max == nil || v.Available == nil || *v.Available < *l.Max {
		return "reserved by PyTorch plus free on the device"
	}
	switch l.Source {
	case "given":
		return "the given limit"
	case "recorded":
		return "the recorded limit"
	case "message":
		return "the limit in the message"
	}
	return fmt.Sprintf("the limit, inferred: %s to %s (--limit sets it)", sizeOr(l.Min), sizeOr(l.Max))
}

// NotMonotone says why settings can fail under a limit although they pass under
// a lower one.
const NotMonotone = "a lower limit releases the cache at other moments, so more memory is not always better."

// Fragmentation returns the fragmentation of a run, and the fractions of reserved
// memory that are lost at the end, by name.
func Fragmentation(f *stats.Fragmentation) []Row {
	var rows []Row
	add := func(v *float64, name, meaning string) {
		rows = append(rows, Row{Mark: name, Value: percentText(v), Text: meaning})
	}
	if f.OfPeaks != nil {
		add(f.OfPeaks, "of the peaks", "1 - peak allocated / peak reserved")
	}
	add(f.ReservedUnallocated, "at the end", "(reserved - allocated) / reserved: not allocated")
	add(f.InactiveSplit, "inactive split", "/ reserved: free, but pinned by allocated neighbours")
	add(f.Internal, "internal", "(allocated - requested) / allocated: lost to rounding")
	add(f.External, "external", "1 - largest free block / free: free, but in pieces")
	return rows
}

// LimitText says under which limit a run was replayed.
func LimitText(limit whatif.Limit) string {
	switch limit.Source {
	case whatif.Given:
		return "limit: " + units.Size(limit.Value()) + ", as given"
	case whatif.Recorded:
		return "limit: " + units.Size(limit.Value()) + ", as recorded"
	case whatif.Inferred:
		return fmt.Sprintf("limit: %s, inferred: served and refused requests show that it was between %s and %s; the upper end is used, --limit sets another",
			units.Size(limit.Value()), sizeOr(limit.Min), sizeOr(limit.Max))
	}
	if limit.Max != nil {
		return fmt.Sprintf("limit: none; the recording had one between %s and %s", sizeOr(limit.Min), sizeOr(limit.Max))
	}
	return "limit: none; the recording shows none"
}

// MemoryText says on which device a run was replayed.
func MemoryText(memory whatif.Memory) string {
	switch memory.Source {
	case whatif.Given:
		return "device memory: " + units.Size(memory.Value()) + ", as given"
	case whatif.Recorded:
		return "device memory: " + units.Size(memory.Value()) + " for the allocator, as the recorder saw it"
	case whatif.Inferred:
		return fmt.Sprintf("device memory: %s for the allocator, inferred: free plus reserved at the out-of-memory event %s",
			units.Size(memory.Value()), countText(*memory.Event))
	}
	return "device memory: unlimited"
}

// Legend says what the numbers of an answer are and how far they go.
func Legend(a *whatif.Answer) []string {
	fails := ""
	for _, r := range a.Results {
		if r.Fails && a.OnOOM == whatif.OnOOMDie {
			fails = " Numbers of a run that fails count only up to the failure, so its peak is not compared."
		}
	}
	said := []string{"Every line replays the recorded calls through PyTorch's allocator rules; it holds as long as the program makes the " +
		"same calls. Reserved is what PyTorch holds of the device, without CUDA's context; allocated is what tensors occupy." + fails +
		" Device allocs and frees are driver calls, mappings of expandable segments included. Driver time estimates what they " +
		"cost on an H200, without waiting for the device; use it to compare settings."}
	if rows := ClaimsOf(a.Results); len(rows) > 0 {
		said = append(said, "What such settings did to other runs: "+ClaimsPage+"#"+strings.Join(rows, ", #")+".")
	}
	if a.Limit.Source == whatif.Inferred && *a.Limit.Min < *a.Limit.Max {
		said = append(said, "The real limit may be lower than the one used here, and what passes may fail under it. Give --limit if you know it.")
	}
	return said
}

// PinnedText says what a segment keeps back.
func PinnedText(s *explain.Segment) string {
	return fmt.Sprintf("%s free in a segment of %s, pinned by %s in %s",
		units.Size(s.Stuck), units.Size(s.Size), units.Size(s.Live), plural(s.Count, "block", "blocks"))
}

// CategoryText returns the name of a category for people.
func CategoryText(category string) string { return strings.ReplaceAll(Clean(category), "_", " ") }

// CauseName is the name of the cause, and what it means.
func CauseName(r *explain.Report) (name, means string) {
	switch {
	case r.Cause == explain.None && r.CauseText != "":
		return "none", "nothing failed yet, but memory grows from step to step"
	case r.Cause == explain.None && r.CauseConfidence == explain.Open:
		return "none", "no failed request is known"
	}
	return strings.ReplaceAll(r.Cause, "_", " "), causeNames[r.Cause]
}

// CauseSentence says in a sentence or two why the job does not run.
func CauseSentence(r *explain.Report) string {
	if r.CauseText == "" {
		return r.Summary
	}
	return r.CauseText + "."
}

// MomentText says when something was: the event, the time, the step.
func MomentText(m *timeline.Moment) string {
	if m == nil || m.Event == nil {
		return "before the first event"
	}
	return momentOf(m)
}

// PeakText says when a sum was highest.
func PeakText(l *stats.Level) string {
	switch {
	case l.Peak == nil:
		return ""
	case l.At == nil:
		return "when the file was written, after the events that are there"
	case l.AtLeast:
		return MomentText(l.At) + ", of the events that are there"
	}
	return MomentText(l.At)
}

// HoldersTime says when the holders of an explanation hold the memory.
func HoldersTime(r *explain.Report) string {
	switch {
	case r.Failure != nil:
		return "when it failed"
	case r.Health != nil && r.Health.AtLeast:
		return "at the peak of the events that are there"
	}
	return "at the peak"
}

// ConfText names settings.
func ConfText(conf string) string { return confText(conf) }

// ResultText returns the answer to one setting in a few words.
func ResultText(r *whatif.Result, onOOM string) string { return verdict(r, onOOM) }

// FailureLines describes the first failing request of a result, where it was
// made on a line of its own.
func FailureLines(r *whatif.Result, onOOM string) []string {
	return strings.Split(failureText(r, onOOM, pageWidth), "\n")
}

// DriverTime writes an estimate in milliseconds.
func DriverTime(ms float64) string { return driverTime(ms) }

// CourseText returns what happened in a file, in one sentence.
func CourseText(f *stats.Snapshot) string { return course(f) }

// ReplayText says how well the replay of a file matched it.
func ReplayText(r *stats.Replay) string { return replayText(r) }

// Plural writes a number with its noun.
func Plural(n int, one, many string) string { return plural(n, one, many) }
