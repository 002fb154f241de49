package findings

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// window is a piece of the trace that holds one step, and perhaps more at its
// ends.
type window struct {
	number     int
	begin, end int // events
	complete   bool
}

// profilerSteps takes the ranges of torch.profiler.
func profilerSteps(t *trace.Trace, seq *sequence, p *timeline.Annotations) *Steps {
	if !strings.HasPrefix(p.StepName, "ProfilerStep") {
		return nil
	}
	var windows []window
	for i, r := range p.Steps {
		w := window{number: i + 1, begin: after(t, r.Begin), end: t.Events.Len(), complete: r.End != math.MaxInt64}
		if _, digits, ok := strings.Cut(r.Name, "#"); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				w.number = n
			}
		}
		if w.complete {
			w.end = after(t, r.End+1)
		}
		windows = append(windows, w)
	}
	return markedSteps(t, seq, FromProfiler, windows, fmt.Sprintf("%d ranges ProfilerStep#n of torch.profiler", len(windows)))
}

// metadataSteps takes texts of user_metadata that differ only in numbers which
// rise.
func metadataSteps(t *trace.Trace, seq *sequence) *Steps {
	meta := &t.Events.Meta
	if meta.Constant() {
		return nil
	}
	type count struct {
		windows []window
		last    []int
		falls   bool
	}
	shapes := map[string]*count{}
	last := trace.NoString
	end, bare, gaps := 0, 0, 0 // the event after the last that has a text; events without one, in all and before it
	for i := range meta.Len() {
		id := meta.At(i)
		if id != trace.NoString {
			end = i + 1
			gaps = bare
		} else if len(shapes) > 0 {
			bare++
		}
		if id == last || id == trace.NoString {
			continue
		}
		last = id
		shape, numbers := numbersOf(t.Strings.Text(id))
		if len(numbers) == 0 {
			continue
		}
		c := shapes[shape]
		if c == nil {
			c = &count{}
			shapes[shape] = c
		}
		switch order := slices.Compare(c.last, numbers); {
		case order == 0:
			continue
		case order > 0:
			c.falls = true
		}
		c.last = numbers
		w := window{number: len(c.windows) + 1, begin: i}
		if len(numbers) == 1 {
			w.number = numbers[0]
		}
		c.windows = append(c.windows, w)
	}
	var best *count
	name := ""
	for shape, c := range shapes {
		if c.falls || len(c.windows) < 2 {
			continue
		}
		if best == nil || len(c.windows) > len(best.windows) || len(c.windows) == len(best.windows) && shape < name {
			best, name = c, shape
		}
	}
	if best == nil {
		return nil
	}
	// A text belongs to a thread, and the backward pass has its own. Where
	// such events lie between the texts, those after the last one say nothing.
	if gaps > 0 {
		end = meta.Len()
	}
	for i := range best.windows {
		w := &best.windows[i]
		w.end, w.complete = end, false
		if i+1 < len(best.windows) {
			w.end, w.complete = best.windows[i+1].begin, true
		}
	}
	s := markedSteps(t, seq, FromMetadata, best.windows,
		fmt.Sprintf("user_metadata counts: %d texts like %q", len(best.windows), t.Strings.Text(meta.At(best.windows[0].begin))))
	if n := len(s.List); n > 0 && !s.List[n-1].Complete { // the texts do not say
		s.List[n-1].Complete = seq.completeLast(s.List)
		s.List[n-1].End = seq.teardown(s.List)
	}
	return s
}

// numbersOf replaces the numbers of a text by #.
func numbersOf(text string) (shape string, numbers []int) {
	var b strings.Builder
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && text[j] >= '0' && text[j] <= '9' {
			j++
		}
		if j == i {
			b.WriteByte(text[i])
			i++
			continue
		}
		n, err := strconv.Atoi(text[i:j])
		if err != nil {
			return "", nil
		}
		numbers = append(numbers, n)
		b.WriteByte('#')
		i = j
	}
	return b.String(), numbers
}

// markedSteps takes windows as the steps that they are. Only what the first one
// holds before the program's rounds begin is left out as set-up, and a first
// one that the trace does not have from its beginning on.
func markedSteps(t *trace.Trace, seq *sequence, source string, windows []window, detail string) *Steps {
	s := &Steps{Source: source, Confidence: Certain, Detail: detail}
	windows = slices.DeleteFunc(windows, func(w window) bool { return seq.first(w.begin) == seq.first(w.end) })
	for i, w := range windows {
		if i+1 < len(windows) {
			w.end = min(w.end, windows[i+1].begin)
		}
		s.List = append(s.List, Step{w.number, w.begin, w.end, w.complete})
	}
	if len(s.List) < 2 {
		return s
	}
	anchor := seq.anchor(windows, false)
	if anchor < 0 {
		return s
	}
	switch at := seq.find(anchor, windows[0].begin, windows[0].end); {
	case at >= 0 && seq.first(at) == seq.first(windows[0].begin): // frees alone are no set-up
	case at >= 0:
		s.List[0].Begin = at
	case s.List[0].Begin == 0:
		s.List = s.List[1:]
	}
	return s
}

// optimizerSteps takes the ranges that torch.optim puts around each step of an
// optimizer. A step begins with the first allocation after the optimizer's last
// step whose stack occurs in all of them: what comes before that, such as
// saving a checkpoint now and then, still belongs to the step before.
func optimizerSteps(t *trace.Trace, seq *sequence, p *timeline.Annotations) *Steps {
	if !strings.HasPrefix(p.StepName, "Optimizer.step") {
		return nil
	}
	n := t.Events.Len()
	var windows []window
	begin := 0
	for _, r := range p.Steps {
		if r.End == math.MaxInt64 {
			break
		}
		if end := after(t, r.End+1); end > begin {
			windows = append(windows, window{number: len(windows) + 1, begin: begin, end: end, complete: true})
			begin = end
		}
	}
	if len(windows) == 0 {
		return nil
	}
	s := &Steps{
		Source: FromOptimizer, Confidence: Certain,
		Detail: fmt.Sprintf("%d ranges %s of torch.optim", len(windows), p.StepName),
	}
	if k := seq.optimizers(windows); k > 1 {
		windows, begin = groupWindows(windows, k)
		s.Detail += fmt.Sprintf(", %d to a step", k)
	}
	tail := window{number: len(windows) + 1, begin: begin, end: n}
	anchor := int32(-1)
	if !seq.sized {
		if len(windows) == 1 {
			anchor = seq.anchor([]window{windows[0], tail}, true)
		} else {
			anchor = seq.anchor(windows, true)
		}
	}
	windows = append(windows, tail)
	for i, w := range windows {
		at := -1
		switch {
		case anchor >= 0:
			at = seq.find(anchor, w.begin, w.end)
		case i == 0 && seq.lives.older > 0:
			continue // it may lack its beginning
		case i == 0:
			at = seq.firstFreed(w.begin, w.end)
			s.Confidence = Likely
		case seq.first(w.begin) < seq.first(w.end) && w.complete:
			at = int(seq.events[seq.first(w.begin)])
		}
		if at >= 0 {
			s.List = append(s.List, Step{Number: len(s.List) + 1, Begin: at, End: w.end, Complete: w.complete})
		}
	}
	if len(s.List) == 0 {
		return nil
	}
	seq.closeSteps(s.List, n)
	return s
}

// maxOptimizers is how many optimizers of one kind a step may have.
const maxOptimizers = 4

// optimizers returns how many optimizers take turns: after so many windows the
// same stacks come again. Ranges do not tell two optimizers of one class apart.
func (s *sequence) optimizers(windows []window) int {
	if s.sized {
		return 1
	}
	// Which windows have a token, as bits; the first one also holds set-up.
	const most = 64
	windows = windows[min(1, len(windows)):min(len(windows), most+1)]
	has := make([]uint64, s.number)
	counts := make([]int, len(windows))
	for k, w := range windows {
		for i := s.first(w.begin); i < s.first(w.end); i++ {
			if t := s.tokens[i]; t >= 0 && has[t]&(1<<k) == 0 {
				has[t] |= 1 << k
				counts[k]++
			}
		}
	}
	for apart := 1; apart <= maxOptimizers && len(windows) > 2*apart; apart++ {
		shares := 0.0
		for k := apart; k < len(windows); k++ {
			both := 0
			for _, bits := range has {
				if bits&(1<<k) != 0 && bits&(1<<(k-apart)) != 0 {
					both++
				}
			}
			// Of the smaller one: a step that does more besides is like others.
			shares += float64(both) / float64(max(1, min(counts[k], counts[k-apart])))
		}
		if shares >= halfOfIt*float64(len(windows)-apart) {
			return apart
		}
	}
	return 1
}

// groupWindows makes one window of each k, and returns where the last one ends.
func groupWindows(windows []window, k int) (out []window, end int) {
	for i := 0; i+k <= len(windows); i += k {
		end = windows[i+k-1].end
		out = append(out, window{number: len(out) + 1, begin: windows[i].begin, end: end, complete: true})
	}
	return out, end
}
