package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/snapshot/message"
	"github.com/ashlar-mem/ashlar/snapshot/stats"
)

// Log is what a log says beside the numbers.
type Log struct {
	Failures *Failures `json:"failures"` // nil unless there are several messages
	// Op is what asked for the memory, by the traceback: "linear", "backward".
	Op     *string          `json:"op"`
	Frames []timeline.Frame `json:"frames"` // of the traceback, innermost first
	Site   timeline.Site    `json:"-"`      // if there are Frames
	Trend  *Trend           `json:"trend"`  // nil unless there are several dumps
	// Refusal is the error of a library; nil if there is none.
	Refusal *string `json:"refusal"`
}

// Failures sums up the messages of a log.
type Failures struct {
	Messages  int   `json:"messages"` // as printed
	Distinct  int   `json:"distinct"` // without repetitions
	Ranks     []int `json:"ranks"`
	Devices   []int `json:"devices"`
	FirstLine int   `json:"first_line"`
	LastLine  int   `json:"last_line"`
	Explained int   `json:"explained_line"`
	// Same reports whether all ask for the same size, at the same line as far as
	// that is known.
	Same bool `json:"same"`
}

// newFailures sums up messages of which one is explained; nil for a single one.
func newFailures(all []*message.OOM, explained *message.OOM) *Failures {
	if len(all) < 2 {
		return nil
	}
	f := &Failures{
		Messages: len(all), Ranks: []int{}, Devices: []int{}, FirstLine: all[0].Line, LastLine: all[len(all)-1].Line, Explained: explained.Line, Same: true,
	}
	distinct := map[string]bool{}
	add := func(list *[]int, n int) {
		if n >= 0 && !slices.Contains(*list, n) {
			*list = append(*list, n)
		}
	}
	for _, m := range all {
		distinct[fmt.Sprint(m.Rank, m.PID, " ", strings.Join(strings.Fields(message.Plain(m.Text)), " "))] = true
		add(&f.Ranks, m.Rank)
		add(&f.Devices, m.Device)
		f.Same = f.Same && sameFailure(m, explained)
	}
	f.Distinct = len(distinct)
	slices.Sort(f.Ranks)
	slices.Sort(f.Devices)
	return f
}

// sameFailure reports whether two messages ask for the same, from the same line
// if both say so.
func sameFailure(a, b *message.OOM) bool {
	if (a.TriedBytes == nil) != (b.TriedBytes == nil) || a.TriedBytes != nil && a.TriedBytes.Mid != b.TriedBytes.Mid {
		return false
	}
	x, ok1 := timeline.SiteOfFrames(framesOf(a.Traceback))
	y, ok2 := timeline.SiteOfFrames(framesOf(b.Traceback))
	return !ok1 || !ok2 || x.Inner == y.Inner && x.User == y.User
}

// text says in a few words which of the messages is explained.
func (f *Failures) text() string {
	said := count(f.Messages) + " messages"
	if f.Distinct < f.Messages {
		said += fmt.Sprintf(", %s different", count(f.Distinct))
	}
	if len(f.Ranks) > 1 {
		said += ", ranks " + runsOf(f.Ranks)
	} else if len(f.Devices) > 1 {
		said += ", GPUs " + runsOf(f.Devices)
	}
	kind := "not all of them the same failure"
	if f.Same {
		kind = "all the same failure"
	}
	return fmt.Sprintf("on line %s (%s, lines %s to %s: %s)", count(f.Explained), said, count(f.FirstLine), count(f.LastLine), kind)
}

// runsOf lists numbers in order, runs of them as "0 to 7".
func runsOf(list []int) string {
	var out []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		switch {
		case j-i > 1:
			out = append(out, fmt.Sprintf("%d to %d", list[i], list[j]))
		default:
			for k := i; k <= j; k++ {
				out = append(out, fmt.Sprint(list[k]))
			}
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}

func framesOf(traceback []message.Frame) []timeline.Frame {
	out := make([]timeline.Frame, len(traceback))
	for i, f := range traceback {
		out[i] = timeline.Frame{Name: f.Name, Filename: f.File, Line: int64(f.Line)}
	}
	return out
}

// addTraceback takes what asked for the memory from a traceback.
func (l *Log) addTraceback(traceback []message.Frame) {
	l.Frames = framesOf(traceback)
	l.Site, _ = timeline.SiteOfFrames(l.Frames)
	if op := opOf(traceback[0]); op != "" {
		l.Op = &op
	}
}

var (
	called  = regexp.MustCompile(`([A-Za-z_][\w.]*)\(`)
	matmul  = regexp.MustCompile(`[\w)\]] @ [\w(]`)
	wrapper = regexp.MustCompile(`^(?:forward|<module>|<lambda>|<listcomp>|__call__)?$`)
)

// opOf names the operation that the innermost frame of a traceback calls: by its
// source, else by the name of its function.
func opOf(f message.Frame) string {
	code := f.Code
	if _, right, ok := strings.Cut(code, " = "); ok && !strings.Contains(strings.Split(code, " = ")[0], "(") {
		code = right
	}
	code = strings.TrimPrefix(strings.TrimPrefix(code, "return "), "await ")
	if matmul.MatchString(code) && !strings.HasPrefix(code, "torch.") && !strings.HasPrefix(code, "F.") {
		return "matmul"
	}
	if m := called.FindStringSubmatch(code); m != nil {
		name := m[1][strings.LastIndexByte(m[1], '.')+1:]
		if name == "run_backward" {
			name = "backward"
		}
		return name
	}
	if wrapper.MatchString(f.Name) {
		return ""
	}
	return f.Name
}

// text says who asked, if a traceback does.
func (l *Log) text() string {
	if l == nil || len(l.Frames) == 0 {
		return ""
	}
	by := ""
	if l.Op != nil {
		by = " by " + *l.Op
	}
	return fmt.Sprintf(" It was requested%s at %s.", by, l.Site)
}

// How memory goes from one dump to the next.
const (
	Grows  = "grows"
	Falls  = "falls"
	Steady = "steady"
	Varies = "varies"
)

// Trend is how allocated memory changes over several dumps of one device.
type Trend struct {
	Kind      string `json:"kind"` // grows, falls, steady, varies
	Dumps     int    `json:"dumps"`
	First     uint64 `json:"first_bytes"`
	Last      uint64 `json:"last_bytes"`
	Least     uint64 `json:"least_bytes"`
	Most      uint64 `json:"most_bytes"`
	PerDump   int64  `json:"bytes_per_dump"`
	FirstLine int    `json:"first_line"`
	LastLine  int    `json:"last_line"`
}

// newTrend follows allocated memory through dumps; nil for fewer than three.
func newTrend(dumps []*stats.Dump) *Trend {
	var values []uint64
	for _, d := range dumps {
		if n, ok := d.Values["allocated_bytes.all.current"]; ok {
			values = append(values, uint64(max(n, 0)))
		}
	}
	if len(values) < 3 || len(values) < len(dumps) {
		return nil
	}
	t := TrendOf(values)
	t.FirstLine, t.LastLine = dumps[0].Line, dumps[len(dumps)-1].Line
	return t
}

// TrendOf says how a series of at least two sizes goes. It grows if all of its
// second half is above all of its first, so that a single peak is no trend.
func TrendOf(values []uint64) *Trend {
	n := len(values)
	t := &Trend{Kind: Varies, Dumps: n, First: values[0], Last: values[n-1], Least: slices.Min(values), Most: slices.Max(values)}
	t.PerDump = (int64(t.Last) - int64(t.First)) / int64(n-1)
	early, late := values[:n/2], values[(n+1)/2:]
	switch {
	case t.Least == t.Most:
		t.Kind = Steady
	case slices.Min(late) > slices.Max(early):
		t.Kind = Grows
	case slices.Max(late) < slices.Min(early):
		t.Kind = Falls
	}
	return t
}

// Text says how memory goes; what is the plural of one point of the series.
func (t *Trend) Text(what string) string {
	switch t.Kind {
	case Steady:
		return fmt.Sprintf("Allocated memory is steady over %s %s: %s.", count(t.Dumps), what, units.Size(t.Last))
	case Varies:
		return fmt.Sprintf("Allocated memory varies over %s %s, without a trend: between %s and %s.", count(t.Dumps), what, units.Size(t.Least), units.Size(t.Most))
	}
	each := strings.TrimSuffix(what, "s")
	return fmt.Sprintf("Allocated memory %s by %s a %s over %s %s: from %s to %s.", t.Kind, units.Size(magnitude(t.PerDump)), each, count(t.Dumps), what, units.Size(t.First), units.Size(t.Last))
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return uint64(-n)
	}
	return uint64(n)
}
