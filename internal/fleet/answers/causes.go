package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/answer/explain"
	"github.com/ashlar-mem/ashlar/internal/timeline"
)

// CausesDocument is what ashlar fleet causes --json prints.
type CausesDocument struct {
	Causes []Cause  `json:"causes"` // the one with most files first
	Notes  []string `json:"notes"`
}

// Cause is what some failures have in common.
type Cause struct {
	Verdict string `json:"verdict"`
	// Frames are the user's own frame of the request, unless memory leaks, and
	// the site of the main holder or pinner, as in Example.
	Frames []timeline.Frame `json:"frames"`
	// Roles says of each frame what happened there: request, holder, or
	// holder_caller, your own line that led to the holder.
	Roles []Role `json:"roles"`
	// Files, Runs, Ranks and Commits count those that failed so.
	Files   int   `json:"files"`
	Runs    int   `json:"runs"`
	Ranks   int   `json:"ranks"`
	Commits int   `json:"commits"`
	FirstUS int64 `json:"first_us"`
	LastUS  int64 `json:"last_us"`
	// Example is the last file that failed so, ExampleHash its identity.
	Example     string    `json:"example"`
	ExampleHash string    `json:"example_hash"`
	Fix         *CauseFix `json:"fix"` // nil if nothing that was tried passes in any
}

// Role is what happened at a frame of a cause.
type Role string

// The roles of frames.
const (
	Requested   Role = "request"       // the request that failed
	Held        Role = "holder"        // what was in its way was allocated
	HeldThrough Role = "holder_caller" // the user's own frame above that
)

// CauseFix is the fix that serves the failed request in most files of a cause.
type CauseFix struct {
	Kind     string `json:"kind"`
	Settings string `json:"settings"` // empty unless it is a setting
	Passes   int    `json:"passes"`
	Of       int    `json:"of"`
}

// place is where files failed, line by line.
type place struct {
	verdict string
	frames  []timeline.Frame
	entries []*Entry // in their order

	listing *diff.Listing
}

// Causes groups the failures that happened at sinceUS or later. It reads an
// explanation for each line at which something failed, to tell which lines moved.
func Causes(ctx context.Context, entries []Entry, sinceUS int64) (*CausesDocument, error) {
	out := &CausesDocument{Causes: []Cause{}, Notes: []string{}}
	g := &causeGrouper{table: diff.NewTable()}
	failed := ordered(entries, func(e *Entry) bool { return e.Failed() && e.TimeUS() >= sinceUS })
	for _, alike := range functionsAlike(placesOf(failed)) {
		groups, err := g.group(ctx, alike)
		if err != nil {
			return nil, err
		}
		for _, places := range groups {
			out.Causes = append(out.Causes, newCause(places))
		}
	}
	slices.SortStableFunc(out.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.FirstUS, b.FirstUS), cmp.Compare(a.ExampleHash, b.ExampleHash))
	})
	if g.unread > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d explanations cannot be read, so it is not known whether lines moved there; %v", g.unread, g.first))
	}
	return out, nil
}

// causeFrames returns the frames by which failures are told apart. Which request
// fails is chance if memory leaks.
func causeFrames(s *Summary) (frames []timeline.Frame, roles []Role) {
	frames, roles = []timeline.Frame{}, []Role{}
	add := func(f timeline.Frame, r Role) { frames, roles = append(frames, f), append(roles, r) }
	if r := s.RequestSite; r != nil && s.Cause != explain.Leak {
		if r.User != nil {
			add(*r.User, Requested)
		} else {
			add(r.Inner, Requested)
		}
	}
	if h := s.HolderSite; h != nil {
		add(h.Inner, Held)
		if h.User != nil && *h.User != h.Inner {
			add(*h.User, HeldThrough)
		}
	}
	return frames, roles
}

// placesOf groups failures by verdict and frames, in their order.
func placesOf(failed []*Entry) []*place {
	var out []*place
	alike := func(e *Entry) string {
		frames, _ := causeFrames(&e.Summary)
		return fmt.Sprintf("%s %q", e.Summary.Cause, frames)
	}
	for _, of := range grouped(failed, alike) {
		s := &of[0].Summary
		frames, _ := causeFrames(s)
		out = append(out, &place{verdict: s.Cause, frames: frames, entries: of})
	}
	return out
}

// functionsAlike groups places that can be one cause: they have the same verdict
// and are in the same functions.
func functionsAlike(all []*place) [][]*place {
	at := map[string]int{}
	var out [][]*place
	for _, p := range all {
		key := p.verdict + " " + diff.FunctionKey(p.frames)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key], out = i, append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}

// causeGrouper finds which places are the same line of different versions.
type causeGrouper struct {
	table  *diff.Table
	unread int   // explanations
	first  error // why
}

// maxCompared is how many places of a group another one is compared with, the
// latest first: versions next to each other differ least.
const maxCompared = 8

// group joins places whose lines moved.
func (g *causeGrouper) group(ctx context.Context, alike []*place) ([][]*place, error) {
	if len(alike) == 1 {
		return [][]*place{alike}, nil
	}
	if err := g.list(ctx, alike); err != nil {
		return nil, err
	}
	var groups [][]*place
	for _, p := range alike {
		if i := g.find(groups, p); i >= 0 {
			groups[i] = append(groups[i], p)
		} else {
			groups = append(groups, []*place{p})
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return groups, nil
}

// find returns the group that a place belongs to: the first with the same lines,
// else the first with the same functions; -1 if there is none.
func (g *causeGrouper) find(groups [][]*place, p *place) int {
	alike := -1
	for i, group := range groups {
		for _, o := range slices.Backward(group[max(0, len(group)-maxCompared):]) {
			edited := o.entries[0].Commit != p.entries[0].Commit || p.entries[0].Commit == ""
			switch g.table.Align(o.listing, p.listing, edited).Match(o.frames, p.frames) {
			case diff.MatchLines:
				return i
			case diff.MatchFunctions:
				if alike < 0 {
					alike = i
				}
			}
		}
	}
	return alike
}

// list makes the listings of places.
func (g *causeGrouper) list(ctx context.Context, alike []*place) error {
	for _, p := range alike {
		frames := p.frames
		e := p.entries[0]
		x, err := e.Source.Explain(ctx, e.Hash)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			if g.unread++; g.first == nil {
				g.first = fmt.Errorf("the first one, of %s: %w", e.File, err)
			}
		default:
			frames = append(framesOf(x.Report), frames...)
		}
		p.listing = g.table.Listing(frames)
	}
	return nil
}

// framesOf returns the frames of all call stacks of a report.
func framesOf(r *explain.Report) []timeline.Frame {
	var out []timeline.Frame
	if r.Failure != nil {
		out = append(out, r.Failure.Frames...)
	}
	if r.Log != nil {
		out = append(out, r.Log.Frames...)
	}
	for _, list := range [][]explain.Holder{r.Holders, r.AtPeak} {
		for _, h := range list {
			out = append(out, h.Frames...)
		}
	}
	for _, s := range r.Pinners {
		for _, b := range s.Blocks {
			out = append(out, b.Frames...)
		}
	}
	for _, f := range r.Findings {
		out = append(out, f.Frames...)
		for _, b := range f.Parts {
			out = append(out, b.Frames...)
		}
	}
	return out
}

// newCause sums a group of places up.
func newCause(places []*place) Cause {
	var all []*Entry
	for _, p := range places {
		all = append(all, p.entries...)
	}
	last := all[0]
	runs, ranks, commits := map[string]bool{}, map[string]bool{}, map[string]bool{}
	c := Cause{Verdict: places[0].verdict, Files: len(all), FirstUS: last.TimeUS(), LastUS: last.TimeUS()}
	for _, e := range all {
		at := e.TimeUS()
		if at > last.TimeUS() || at == last.TimeUS() && e.Hash > last.Hash {
			last = e
		}
		c.FirstUS, c.LastUS = min(c.FirstUS, at), max(c.LastUS, at)
		if e.Run != "" {
			runs[e.Run] = true
		}
		if e.Commit != "" {
			commits[e.Commit] = true
		}
		ranks[e.rankKey()] = true
	}
	c.Runs, c.Ranks, c.Commits = len(runs), len(ranks), len(commits)
	c.Frames, c.Roles = causeFrames(&last.Summary)
	c.Example, c.ExampleHash = last.File, last.Hash
	c.Fix = bestFix(all)
	return c
}

// bestFix returns the fix that passes in most files; of equal ones the one that
// explain puts first. More memory passes always, so it counts only if nothing else
// passes.
func bestFix(all []*Entry) *CauseFix {
	type tally struct {
		Fix
		passes, place int
	}
	var fixes []*tally
	at := map[Fix]*tally{}
	for _, e := range all {
		seen := map[Fix]bool{}
		for i, f := range e.Summary.Fixes {
			if !f.Passes || seen[f] {
				continue
			}
			seen[f] = true
			if at[f] == nil {
				at[f] = &tally{Fix: f}
				fixes = append(fixes, at[f])
			}
			at[f].passes++
			at[f].place += i
		}
	}
	if len(fixes) == 0 {
		return nil
	}
	last := func(t *tally) int {
		if t.Kind == explain.FixMemory {
			return 1
		}
		return 0
	}
	best := slices.MinFunc(fixes, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(b.passes, a.passes), cmp.Compare(a.place, b.place),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Settings, b.Settings))
	})
	return &CauseFix{Kind: best.Kind, Settings: best.Settings, Passes: best.passes, Of: len(all)}
}
