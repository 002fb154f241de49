package findings

import (
	"cmp"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/trace"
)

// Holder is what one call stack holds of one category.
type Holder struct {
	Stack      trace.StackID // trace.NoStack for blocks without frames
	Category   Category
	Confidence Confidence // of the weakest of its blocks
	Bytes      uint64
	Blocks     int
}

// LineHolder is what one line of the user's own program led to.
type LineHolder struct {
	Line   timeline.Frame // zero for stacks without frames
	User   bool           // Line is the user's own; otherwise the stack has no such frame
	Bytes  uint64
	Blocks int
}

// ModuleHolder is what one nn.Module allocated, as far as its stack shows it.
type ModuleHolder struct {
	// Path is the forward functions of the modules that called each other,
	// innermost first.
	Path   []timeline.Frame
	Bytes  uint64
	Blocks int
}

// CategoryHolder is what is held of one category.
type CategoryHolder struct {
	Category Category
	Bytes    uint64
	Blocks   int
	// How much of Bytes was decided with which confidence.
	CertainBytes, LikelyBytes, GuessBytes uint64
}

// Confidence returns the best that holds for more than half of the bytes.
func (h *CategoryHolder) Confidence() Confidence {
	switch {
	case 2*h.CertainBytes > h.Bytes:
		return Certain
	case 2*(h.CertainBytes+h.LikelyBytes) > h.Bytes:
		return Likely
	}
	return Guess
}

// Holders is who holds the active memory at one moment, in several ways; each
// list has the largest first and adds up to Bytes, but for Modules, which leaves
// out what is allocated outside of modules.
type Holders struct {
	Event      int // the moment after it; -1 is before the first
	Bytes      uint64
	Blocks     int
	Stacks     []Holder
	Lines      []LineHolder
	Modules    []ModuleHolder
	Categories []CategoryHolder
}

// Holders returns who holds the memory after an event; -1 is before the first.
func (a *Analysis) Holders(event int) *Holders {
	h := &Holders{Event: event}
	a.once.Do(func() { a.categories = newCategories(a) })
	type key struct {
		stack    trace.StackID
		category Category
	}
	stacks := map[key]int{}
	cats := map[Category]int{}
	for b := range a.lives.all() {
		if int(b.born) > event {
			break
		}
		if !b.alive(int32(event)) {
			continue
		}
		v := a.categories.categoryOf(b)
		h.Bytes += b.size
		h.Blocks++
		k := key{known(b.stack), v.category}
		at, ok := stacks[k]
		if !ok {
			at = len(h.Stacks)
			stacks[k] = at
			h.Stacks = append(h.Stacks, Holder{Stack: k.stack, Category: v.category, Confidence: v.confidence})
		}
		s := &h.Stacks[at]
		s.Bytes += b.size
		s.Blocks++
		s.Confidence = weaker(s.Confidence, v.confidence)
		if at, ok = cats[v.category]; !ok {
			at = len(h.Categories)
			cats[v.category] = at
			h.Categories = append(h.Categories, CategoryHolder{Category: v.category})
		}
		h.Categories[at].add(b.size, v.confidence)
	}
	a.lines(h)
	a.modules(h)
	slices.SortFunc(h.Stacks, func(x, y Holder) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Stack, y.Stack), cmp.Compare(x.Category, y.Category))
	})
	slices.SortFunc(h.Categories, func(x, y CategoryHolder) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Category, y.Category))
	})
	return h
}

func (h *CategoryHolder) add(bytes uint64, c Confidence) {
	h.Bytes += bytes
	h.Blocks++
	switch c {
	case Certain:
		h.CertainBytes += bytes
	case Likely:
		h.LikelyBytes += bytes
	default:
		h.GuessBytes += bytes
	}
}

// lines adds the stacks up by line.
func (a *Analysis) lines(h *Holders) {
	at := map[timeline.Frame]int{}
	for _, s := range h.Stacks {
		site, ok := timeline.SiteOf(a.Trace, s.Stack)
		line := site.User
		if ok && !site.HasUser {
			line = site.Inner
		}
		k, found := at[line]
		if !found {
			k = len(h.Lines)
			at[line] = k
			h.Lines = append(h.Lines, LineHolder{Line: line, User: site.HasUser})
		}
		h.Lines[k].Bytes += s.Bytes
		h.Lines[k].Blocks += s.Blocks
	}
	slices.SortStableFunc(h.Lines, func(x, y LineHolder) int { return cmp.Compare(y.Bytes, x.Bytes) })
}

// modules adds the stacks up by the modules in them.
func (a *Analysis) modules(h *Holders) {
	at := map[trace.StackID]int{} // the path is a stack of its own
	paths := trace.NewStacks()
	for _, s := range h.Stacks {
		path := a.stacks.modulePath(s.Stack)
		if len(path) == 0 {
			continue
		}
		id := paths.Add(path)
		k, found := at[id]
		if !found {
			k = len(h.Modules)
			at[id] = k
			m := ModuleHolder{}
			for _, f := range path {
				m.Path = append(m.Path, frameOf(a.Trace, f))
			}
			h.Modules = append(h.Modules, m)
		}
		h.Modules[k].Bytes += s.Bytes
		h.Modules[k].Blocks += s.Blocks
	}
	slices.SortStableFunc(h.Modules, func(x, y ModuleHolder) int { return cmp.Compare(y.Bytes, x.Bytes) })
}

// modulePath returns the frames of a stack that are the forward functions of
// modules, innermost first. A module is seen by the call of torch.nn.Module
// around it; wrappers may stand between.
func (f *stackFacts) modulePath(id trace.StackID) []trace.FrameID {
	if f.marks[id]&markModule == 0 {
		return nil
	}
	frames := f.trace.Stacks.Frames(id)
	var path []trace.FrameID
	inside := -1 // the frame that stands for the module around
	for i := len(frames) - 1; i >= 0; i-- {
		switch {
		case f.frames[frames[i]]&markModule != 0:
			if inside >= 0 {
				path = append(path, frames[inside])
			}
			inside = -1
			if i > 0 {
				inside = i - 1
			}
		case inside >= 0 && f.trace.Strings.Text(f.trace.Stacks.Frame(frames[i]).Name) == "forward" &&
			f.trace.Strings.Text(f.trace.Stacks.Frame(frames[inside]).Name) != "forward":
			inside = i
		}
	}
	if inside >= 0 {
		path = append(path, frames[inside])
	}
	slices.Reverse(path)
	return path
}
