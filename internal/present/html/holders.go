package html

import (
	"strconv"

	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/present/text"
	"github.com/ashlar-mem/ashlar/internal/timeline"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// holders lists who holds the memory at the moment.
type holders struct {
	Kinds   []kind
	Lines   []holder // of the user's own code
	Stacks  []holder
	More    []holder // further stacks
	Modules []holder
	Left    string // what is not listed
}

// kind is memory by what it is for.
type kind struct {
	Class, Name, Confidence string
	Size                    size
	Blocks                  string
	X, Width                string // in a bar of kindsWidth
	Share                   string
}

// kindsWidth is how wide the bar of all kinds is.
const kindsWidth = 960

// holder is memory that somebody allocated.
type holder struct {
	Size   size
	Blocks string
	Share  string
	Class  string // of its category
	Name   string // of its category, with the confidence
	Stack  stack
}

// firstStacks is how many call stacks are not folded away.
const firstStacks = 12

func newHolders(s *subject, d detail) holders {
	var h holders
	stacks, lines, modules, kinds := s.held()
	all := uint64(0)
	for _, k := range kinds {
		all += k.Bytes
	}
	x := 0.0
	for _, k := range kinds {
		width := kindsWidth * part(k.Bytes, all)
		h.Kinds = append(h.Kinds, kind{
			Class: k.Category, Name: text.CategoryText(k.Category), Confidence: k.Confidence, Size: newSize("categories."+k.Category, k.Bytes),
			Blocks: units.Count(int64(k.Blocks)), X: px(x), Width: px(width), Share: share100(k.Bytes, all),
		})
		x += width
	}
	for _, l := range lines[:min(len(lines), firstStacks)] {
		h.Lines = append(h.Lines, newHolder("", l.Bytes, l.Blocks, all, stack{Site: d.clip(l.Line.String())}))
	}
	for i, k := range stacks[:min(len(stacks), d.holders)] {
		at := d.stack(k.Frames, k.Site)
		if i >= firstStacks { // the first ones fill a page already
			at.Frames = nil
		}
		one := newHolder("holders."+strconv.Itoa(i), k.Bytes, k.Blocks, all, at)
		one.Class, one.Name = k.Category, text.CategoryText(k.Category)+" ("+k.Confidence+")"
		if i < firstStacks {
			h.Stacks = append(h.Stacks, one)
		} else {
			h.More = append(h.More, one)
		}
	}
	for _, m := range modules[:min(len(modules), d.holders/2)] {
		h.Modules = append(h.Modules, newHolder("", m.Bytes, m.Blocks, all, stack{Site: d.clip(m.Module)}))
	}
	if more := len(stacks) - d.holders; more > 0 {
		h.Left = "and " + text.Plural(more, "more call stack", "more call stacks")
	}
	return h
}

func newHolder(field string, bytes uint64, blocks int, all uint64, at stack) holder {
	return holder{Size: newSize(field, bytes), Blocks: units.Count(int64(blocks)), Share: share100(bytes, all), Stack: at}
}

func part(n, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

func share100(n, all uint64) string {
	p := 100 * part(n, all)
	if n > 0 && p < 0.5 {
		return "<1 %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// held is who holds the memory at the moment: as explain has it or, where it
// could not look into the file, by the same analysis.
func (s *subject) held() ([]explain.Holder, []explain.LineHolder, []explain.ModuleHolder, []explain.CategoryHolder) {
	if r := s.Explain; r != nil && len(r.Holders) > 0 {
		return r.Holders, r.ByLine, r.ByModule, r.ByKind
	}
	if s.trace == nil {
		return nil, nil, nil, nil
	}
	var (
		stacks []explain.Holder
		lines  []explain.LineHolder
		kinds  []explain.CategoryHolder
	)
	h := s.analysis.Holders(s.moment.event)
	for _, k := range h.Stacks {
		one := explain.Holder{
			Bytes: k.Bytes, Blocks: k.Blocks, Category: string(k.Category), Confidence: string(k.Confidence),
			Frames: timeline.Frames(s.trace, k.Stack),
		}
		one.Site, _ = timeline.SiteOf(s.trace, k.Stack)
		stacks = append(stacks, one)
	}
	for _, l := range h.Lines {
		if l.User {
			lines = append(lines, explain.LineHolder{Bytes: l.Bytes, Blocks: l.Blocks, Line: l.Line})
		}
	}
	for i := range h.Categories {
		c := &h.Categories[i]
		kinds = append(kinds, explain.CategoryHolder{Bytes: c.Bytes, Blocks: c.Blocks, Category: string(c.Category), Confidence: string(c.Confidence())})
	}
	return stacks, lines, nil, kinds
}

// pinners are the segments that live blocks keep from release.
type pinners struct {
	First, More []pinner
	Left        string
}

// pinner is such a segment, or several that look the same.
type pinner struct {
	Times             string
	Stuck, Size, Live size
	Blocks            string
	Held              []holder
	Left              string
	alike             int
	key               string
}

const (
	maxPinners   = 50 // are looked at
	firstPinners = 8  // are not folded away
	pinnerStacks = 3  // call stacks of a segment that are shown
)

func newPinners(s *subject, d detail) pinners {
	var out pinners
	if s.Explain == nil {
		return out
	}
	var list []*pinner
	at := map[string]*pinner{}
	all := s.Explain.Pinners
	for i := range all[:min(len(all), maxPinners)] {
		p := &all[i]
		one := &pinner{
			Stuck: newSize("pinners.stuck_bytes", p.Stuck), Size: newSize("", p.Size), Live: newSize("", p.Live),
			Blocks: units.Count(int64(p.Count)), key: text.PinnedText(p),
		}
		one.Held, one.Left = d.blocks(p.Blocks, p.Live, pinnerStacks)
		for _, h := range one.Held {
			one.key += "\n" + h.Size.Text + " " + h.Stack.Site
		}
		if at[one.key] == nil {
			at[one.key] = one
			list = append(list, one)
		}
		at[one.key].alike++
	}
	for i, p := range list[:min(len(list), d.pinned)] {
		p.Times = units.Count(int64(p.alike))
		if i < firstPinners {
			out.First = append(out.First, *p)
		} else {
			out.More = append(out.More, *p)
		}
	}
	if n := len(list) - d.pinned; n > 0 {
		out.Left = "and " + text.Plural(n, "more", "more")
	}
	return out
}

// blocks are bytes by call stack.
func (d detail) blocks(list []explain.Block, all uint64, most int) (out []holder, more string) {
	for _, b := range list[:min(len(list), most)] {
		site := noStack
		if len(b.Frames) > 0 {
			site = d.clip(b.Site.String())
		}
		out = append(out, newHolder("", b.Bytes, b.Count, all, stack{Site: site}))
	}
	if n := len(list) - most; n > 0 {
		more = "and " + text.Plural(n, "more call stack", "more call stacks")
	}
	return out, more
}

// finding is something beside the verdict that is worth knowing.
type finding struct {
	Kind, Confidence, Text string
	Parts                  []holder
	More                   string
	Stack                  *stack
}

// findingParts is how many call stacks of a finding are shown.
const findingParts = 6

func newFindings(s *subject, d detail) []finding {
	var out []finding
	if s.Explain == nil {
		return nil
	}
	for i := range s.Explain.Findings {
		f := &s.Explain.Findings[i]
		if f.Kind == explain.Ignored || len(out) >= d.findings {
			continue
		}
		one := finding{Kind: f.Kind, Confidence: f.Confidence, Text: d.say(f.Detail)}
		one.Parts, one.More = d.blocks(f.Parts, f.Bytes, min(findingParts, d.findings))
		if len(f.Parts) == 0 && len(f.Frames) > 0 {
			at := d.stack(f.Frames, f.Site)
			one.Stack = &at
		}
		out = append(out, one)
	}
	return out
}
