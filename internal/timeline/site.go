package timeline

import (
	"path"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/trace"
)

// Frame is a place in a program.
type Frame struct {
	Name     string `json:"name"`
	Filename string `json:"filename"`
	Line     int64  `json:"line"`
}

// Frames returns the frames of a stack, innermost first; nil if the file has
// none.
func Frames(t *trace.Trace, id trace.StackID) []Frame {
	ids := t.Stacks.Frames(id)
	if len(ids) == 0 {
		return nil
	}
	out := make([]Frame, len(ids))
	for i, f := range ids {
		out[i] = frame(t, f)
	}
	return out
}

func frame(t *trace.Trace, id trace.FrameID) Frame {
	f := t.Stacks.Frame(id)
	return Frame{t.Strings.Text(f.Name), t.Strings.Text(f.File), f.Line}
}

// Site is what a reader wants to see of a stack: where the allocation was made,
// without the frames that every stack has, and which line of the user's own
// program led there.
type Site struct {
	Inner, User Frame
	HasUser     bool   // Inner may be the same frame
	Via         *Frame // tells this stack from others with the same Inner and User; often nil
}

// SiteOf picks the frames of a stack; false if it has none.
func SiteOf(t *trace.Trace, id trace.StackID) (Site, bool) {
	ids := t.Stacks.Frames(id)
	return siteOf(len(ids), func(i int) Frame { return frame(t, ids[i]) })
}

// SiteOfFrames is SiteOf for a stack that is in no trace, innermost frame first.
func SiteOfFrames(frames []Frame) (Site, bool) {
	return siteOf(len(frames), func(i int) Frame { return frames[i] })
}

func siteOf(n int, at func(i int) Frame) (Site, bool) {
	if n == 0 {
		return Site{}, false
	}
	s := Site{Inner: at(0)}
	found := false
	for i := range n {
		f := at(i)
		if !found && !f.plumbing() {
			s.Inner, found = f, true
		}
		if f.user() {
			s.User, s.HasUser = f, true
			break
		}
	}
	return s, true
}

// String returns the site on one line, innermost first.
func (s Site) String() string { return s.text(Frame.String, Frame.String) }

// Fit is String, shortened towards n characters by leaving out names of
// functions: first the user's, which has its line, then all.
func (s Site) Fit(n int) string {
	for _, text := range []string{s.String(), s.text(Frame.String, Frame.place)} {
		if len([]rune(text)) <= n {
			return text
		}
	}
	return s.text(Frame.place, Frame.place)
}

func (s Site) text(inner, outer func(Frame) string) string {
	text := inner(s.Inner)
	if s.Via != nil {
		text += " < " + outer(*s.Via)
	}
	if s.HasUser && s.User != s.Inner {
		text += " < " + outer(s.User)
	}
	return text
}

// TellApart sets Via of sites that look the same to the innermost frame in which
// their stacks differ.
func TellApart(t *trace.Trace, stacks []trace.StackID, sites []Site) {
	for i := range sites {
		if len(t.Stacks.Frames(stacks[i])) == 0 {
			continue
		}
		for j := range sites {
			if i == j || sites[i].Inner != sites[j].Inner || sites[i].User != sites[j].User || stacks[i] == stacks[j] {
				continue
			}
			if via, ok := sites[i].differs(t, t.Stacks.Frames(stacks[i]), t.Stacks.Frames(stacks[j])); ok {
				sites[i].Via = &via
				break
			}
		}
	}
}

// differs returns the first frame of a that b does not have in its place and
// that the site does not show already.
func (s *Site) differs(t *trace.Trace, a, b []trace.FrameID) (Frame, bool) {
	for i, id := range a {
		if i < len(b) && b[i] == id {
			continue
		}
		if f := frame(t, id); f.place() != s.Inner.place() && f.place() != s.User.place() {
			return f, true
		}
	}
	return Frame{}, false
}

// String returns the frame on one line, "modeling_gpt2.py:702 forward".
func (f Frame) String() string {
	if f.native() {
		return shortNative(f.Name)
	}
	return f.place() + " " + f.Name
}

// place returns the frame without its function, if it has a line.
func (f Frame) place() string {
	if f.native() {
		return shortNative(f.Name)
	}
	file := path.Base(f.Filename)
	if r := []rune(file); len(r) > longFile { // as torch.compile names its own
		file = string(r[:longFile/3]) + "..." + string(r[len(r)-longFile/3:])
	}
	return file + ":" + strconv.FormatInt(f.Line, 10)
}

// longFile is the length from which the name of a file is shortened.
const longFile = 36

// native reports whether a frame is of compiled code, not Python.
func (f Frame) native() bool {
	switch path.Ext(f.Filename) {
	case ".py":
		return false
	case ".cpp", ".cc", ".c", ".cu", ".h", ".hpp", ".cuh":
		return true
	}
	return f.Filename == "" || f.Filename == "??" || f.Line == 0
}

// library reports whether the user did not write the code: installed packages,
// Python's own, and what torch.compile generates.
func (f Frame) fromLibrary() bool {
	for _, part := range []string{"/site-packages/", "/dist-packages/", "/lib/python3", "/inductor/", "/torchinductor_", "/pytorch/torch/"} {
		if strings.Contains(f.Filename, part) {
			return true
		}
	}
	typed := f.Filename == "<stdin>" || strings.HasPrefix(f.Filename, "<ipython-input")
	return strings.HasPrefix(f.Filename, "<") && !typed || strings.HasPrefix(f.Filename, "torch/")
}

func (f Frame) user() bool { return !f.native() && !f.fromLibrary() }

// plumbing reports whether a frame stands between any call and its allocation.
func (f Frame) plumbing() bool {
	switch f.Name {
	case "_call_impl", "_wrapped_call_impl", "decorate_context", "__torch_dispatch__":
		return true
	case "__call__", "_fn", "inner":
		return strings.HasSuffix(f.Filename, "torch/_ops.py") || strings.Contains(f.Filename, "/torch/_dynamo/") || strings.HasSuffix(f.Filename, "torch/_compile.py")
	}
	for _, prefix := range []string{"torch::unwind", "torch::CapturedTraceback", "torch::cuda::(anonymous namespace)::gather", "c10::cuda::CUDACachingAllocator"} {
		if strings.HasPrefix(f.Name, prefix) {
			return true
		}
	}
	return false
}

// shortNative leaves out the arguments of a C++ function and of its templates.
func shortNative(name string) string {
	name = strings.ReplaceAll(name, "(anonymous namespace)", "{anonymous}")
	var b strings.Builder
	depth := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '<':
			depth++
		case c == '>' && depth > 0:
			depth--
		case c == '(' && depth == 0:
			return cutResult(b.String())
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return cutResult(b.String())
}

// cutResult drops the type that a demangled template function begins with.
func cutResult(name string) string {
	if i := strings.LastIndexByte(name, ' '); i >= 0 && !strings.Contains(name, "operator") {
		return name[i+1:]
	}
	return name
}
