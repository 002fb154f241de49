package timeline

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/trace"
)

// Range is a named piece of the program's time, from its annotations.
type Range struct {
	Name       string
	Begin, End int64 // microseconds; the least and the largest number if the file does not say
}

// Annotations are what a file's annotations say about the program.
type Annotations struct {
	Ranges []Range // by beginning
	// Steps are the steps of training or serving: those of the profiler if it
	// ran, otherwise each reaches from the end of one Optimizer.step to the end
	// of the next.
	Steps []Range
	// StepName names the annotation that makes the steps; empty without steps.
	StepName string
}

// The annotations that mark steps.
const (
	profilerStep  = "ProfilerStep#"
	optimizerStep = "Optimizer.step#"
)

// NewAnnotations pairs the annotations of a trace.
func NewAnnotations(t *trace.Trace) *Annotations {
	out := &Annotations{}
	open := map[trace.StringID][]int{} // positions in Ranges
	for i := range t.Annotations {
		a := &t.Annotations[i]
		if a.Time == trace.NoTime || a.Device != t.Device && !t.Host {
			continue
		}
		if a.Begin {
			open[a.Name] = append(open[a.Name], len(out.Ranges))
			out.Ranges = append(out.Ranges, Range{t.Strings.Text(a.Name), a.Time, math.MaxInt64})
			continue
		}
		if waiting := open[a.Name]; len(waiting) > 0 {
			out.Ranges[waiting[len(waiting)-1]].End = a.Time
			open[a.Name] = waiting[:len(waiting)-1]
			continue
		}
		out.Ranges = append(out.Ranges, Range{t.Strings.Text(a.Name), math.MinInt64, a.Time})
	}
	slices.SortStableFunc(out.Ranges, func(a, b Range) int { return cmp.Compare(a.Begin, b.Begin) })
	out.findSteps()
	return out
}

func (a *Annotations) findSteps() {
	last := int64(math.MinInt64)
	for _, r := range a.Ranges {
		if strings.HasPrefix(r.Name, profilerStep) {
			a.Steps = append(a.Steps, r)
		}
	}
	if len(a.Steps) > 0 {
		a.StepName = strings.TrimSuffix(profilerStep, "#")
		return
	}
	for _, r := range a.Ranges {
		if !strings.HasPrefix(r.Name, optimizerStep) || a.StepName != "" && r.Name != a.StepName {
			continue // a second optimizer steps along with the first
		}
		a.StepName = r.Name
		a.Steps = append(a.Steps, Range{r.Name, last, r.End})
		last = r.End
	}
}

// Place says where in the program a moment lies.
type Place struct {
	// Step counts from 1; 0 if the moment lies in no step. One more than there
	// are steps is the time after the last one.
	Step int
	// Annotation is the innermost range around the moment; empty if none.
	Annotation string
}

// At returns the place of a time.
func (a *Annotations) At(time int64) Place {
	var at Place
	if time == trace.NoTime {
		return at
	}
	for _, r := range a.Ranges {
		if r.Begin > time {
			break
		}
		if time <= r.End {
			at.Annotation = r.Name // the latest to begin is the innermost
		}
	}
	for i, s := range a.Steps {
		if s.Begin <= time && time <= s.End {
			at.Step = i + 1
			return at
		}
	}
	if n := len(a.Steps); n > 0 && time > a.Steps[n-1].End {
		at.Step = n + 1
	}
	return at
}

// Names counts the ranges by name, in the order of their first one.
func (a *Annotations) Names() []NameCount {
	var out []NameCount
	at := map[string]int{}
	for _, r := range a.Ranges {
		i, ok := at[r.Name]
		if !ok {
			i = len(out)
			at[r.Name] = i
			out = append(out, NameCount{Name: r.Name})
		}
		out[i].Count++
	}
	return out
}

// NameCount is how often something of a name is there.
type NameCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Complete returns the number of steps that came to an end.
func (a *Annotations) Complete() int {
	n := 0
	for _, s := range a.Steps {
		if s.End != math.MaxInt64 {
			n++
		}
	}
	return n
}
