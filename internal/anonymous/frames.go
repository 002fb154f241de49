package anonymous

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// table is a table of stacks with hidden frames.
type table struct {
	stacks *trace.Stacks
	ids    []trace.StackID // by those before. Two may become one: those of two copies of PyTorch
}

// stacks returns the table of a trace with its frames hidden.
func (h *hider) stacks(t *trace.Trace) table {
	if s, ok := h.tables[t.Stacks]; ok {
		return s
	}
	out := table{trace.NewStacks(), make([]trace.StackID, t.Stacks.Len())}
	h.tables[t.Stacks] = out
	frames := make([]trace.FrameID, t.Stacks.NumFrames())
	for i := range frames {
		f := t.Stacks.Frame(trace.FrameID(i))
		name, file := h.frame(frameAt(t.Stacks, t.Strings, i))
		if f.Extra > 0 { // frames that differ in it alone stay different
			name += "-" + h.word("node", strconv.Itoa(int(f.Extra)))
		}
		frames[i] = out.stacks.AddFrame(trace.Frame{Name: h.strings.Add(name), File: h.strings.Add(file), Line: f.Line})
	}
	out.ids[trace.EmptyStack] = trace.EmptyStack
	for id := int(trace.EmptyStack) + 1; id < t.Stacks.Len(); id++ {
		var stack []trace.FrameID
		for _, f := range t.Stacks.Frames(trace.StackID(id)) {
			stack = append(stack, frames[f])
		}
		out.ids[id] = out.stacks.Add(stack)
	}
	return out
}

func frameAt(stacks *trace.Stacks, strings *trace.Strings, i int) timeline.Frame {
	f := stacks.Frame(trace.FrameID(i))
	return timeline.Frame{Name: strings.Text(f.Name), Filename: strings.Text(f.File), Line: f.Line}
}

// frame hides the names of a frame.
func (h *hider) frame(f timeline.Frame) (name, file string) {
	return h.function(f), h.file(f)
}

func (h *hider) file(f timeline.Frame) string {
	ending := path.Ext(f.Filename)
	if !slices.Contains(endings, ending) {
		ending = ""
	}
	switch {
	case f.Filename == "", f.Filename == "??", f.Filename == "<stdin>":
		return f.Filename
	case strings.HasPrefix(f.Filename, "<") && f.User():
		return "<ipython-input-" + h.word("file", f.Filename) + ">" + ending
	case strings.HasPrefix(f.Filename, "<"):
		return "<" + h.word("file", f.Filename) + ">" + ending
	}
	folder := "/program/"
	if !f.Native() && !f.User() {
		folder = "/site-packages/"
	}
	if below := f.BelowTorch(); below != "" {
		return folder + "torch/" + h.torchFile(below, ending)
	}
	for _, end := range otherFiles {
		if strings.HasSuffix(f.Filename, end) {
			return folder + strings.TrimPrefix(end, "/")
		}
	}
	return folder + h.word("file", f.Filename) + ending
}

func (h *hider) torchFile(below, ending string) string {
	if torchFiles[below] {
		return below
	}
	word := h.word("file", "torch/"+below) + ending
	for _, folder := range torchFolders {
		if strings.HasPrefix(below, folder) {
			return folder + word
		}
	}
	return word
}

func (h *hider) function(f timeline.Frame) string {
	if functions[f.Name] || f.Name == "" || f.Name == "??" {
		return f.Name
	}
	kept := ""
	parts := anyParts
	if !strings.HasSuffix(f.Filename, ".py") {
		parts = append(slices.Clone(anyParts), nativeParts...)
		for _, start := range nativeStarts {
			if strings.HasPrefix(f.Name, start) {
				kept = start
			}
		}
	}
	lower := strings.ToLower(f.Name)
	for _, part := range parts {
		if strings.Contains(lower, part) {
			kept += part + "-"
		}
	}
	return kept + h.word("function", f.Name)
}
