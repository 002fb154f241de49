package explain

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// What stands for a job whose stacks do not tell what was run, as in the runner's usage.
const (
	someScript = "SCRIPT"
	someModule = "-m MODULE" // its file does not tell its package
)

// runners are files that run a script and may lie beside it.
var runners = []string{"ashlar.py", "ashlar_torch.py"}

// plainName is a name that a shell takes as it is: a recording may have any.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)

// scriptOf returns what the runner has to be told to run the job of a recording again.
func scriptOf(t *trace.Trace) string {
	frames := make([]timeline.Frame, t.Stacks.NumFrames())
	begins := make([]bool, len(frames)) // the job's own file begins with it
	for id := range frames {
		f := t.Stacks.Frame(trace.FrameID(id))
		frames[id] = timeline.Frame{Name: t.Strings.Text(f.Name), Filename: t.Strings.Text(f.File), Line: f.Line}
		begins[id] = frames[id].Name == "<module>" && frames[id].User() && !slices.Contains(runners, path.Base(frames[id].Filename))
	}
	script := ""
	for id := range t.Stacks.Len() {
		stack := t.Stacks.Frames(trace.StackID(id)) // innermost first
		for i, at := range slices.Backward(stack) {
			if !begins[at] {
				continue
			}
			name := runAs(frames[at].Filename, func(outer int) (f timeline.Frame) {
				if i+outer < len(stack) {
					f = frames[stack[i+outer]]
				}
				return f
			})
			if script != "" && script != name {
				return someScript
			}
			script = name
			break
		}
	}
	if script == "" {
		return someScript
	}
	return script
}

// runAs returns what runs a file again, of which the frames around it tell whether it was run as a module.
func runAs(file string, around func(int) timeline.Frame) string {
	for n := 1; isRunpy(around(n)); n++ {
		if name := around(n).Name; name == "_run_module_as_main" || name == "run_module" {
			return someModule
		}
	}
	if name := path.Base(file); plainName.MatchString(name) && !strings.Contains(file, "/ipykernel_") { // whose cells have files
		return name
	}
	return someScript
}

// isRunpy reports whether a frame is of Python's module that runs others.
func isRunpy(f timeline.Frame) bool {
	return path.Base(f.Filename) == "runpy.py" || f.Filename == "<frozen runpy>"
}
