package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/hostmem/detect"
	"github.com/ashlar-mem/ashlar/internal/hostmem/variant"
)

// Comparison is a command under all variants.
type Comparison struct {
	Command        []string          `json:"command"`
	Repeat         int               `json:"repeat"`
	Results        []Result          `json:"results"`
	Missing        []variant.Missing `json:"missing"`
	Recommendation Recommendation    `json:"recommendation"`
	Notes          []string          `json:"notes"`
	Interrupted    bool              `json:"interrupted"`
}

// Compare runs the command under each variant, repeat times, interleaved. When
// the context ends it returns what is known by then, with Interrupted set.
// Progress is told the number of runs that are done and what runs now.
func Compare(ctx context.Context, s Spec, ready []variant.Ready, repeat int, progress func(done int, variant string)) (*Comparison, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(int, string) {}
	}
	runs := make([][]*Run, len(ready))
	var left escaped
	notes := removedNotes(s.Environ, ready)
	done := 0
rounds:
	for round := range repeat {
		for i := range ready {
			// Another variant begins each round: none is always after the same.
			n := (i + round) % len(ready)
			progress(done, ready[n].Name)
			r, err := s.one(ctx, &ready[n])
			if err != nil {
				return nil, err
			}
			notes = append(notes, oddities(r)...)
			left.add(r)
			if f := r.Found; !r.Cut && f != nil && f.Allocator == detect.Go {
				return nil, fmt.Errorf("%s is a Go program, with a memory manager of its own: LD_PRELOAD has no effect (%s)", s.Command[0], f.Executable)
			}
			// One that was only to be ended when the user came is measured.
			if !r.Cut {
				runs[n] = append(runs[n], r)
				done++
			}
			if ctx.Err() != nil {
				break rounds
			}
		}
	}
	c := Summarize(&s, ready, runs, repeat)
	c.Notes = once(slices.Concat(notes, left.notes(), fallingNotes(c.Results)))
	c.Interrupted = done < repeat*len(ready)
	return c, nil
}

// Summarize compares runs that were made: those of each variant.
func Summarize(s *Spec, ready []variant.Ready, runs [][]*Run, repeat int) *Comparison {
	c := &Comparison{Command: s.Command, Repeat: repeat, Results: []Result{}, Missing: []variant.Missing{}, Notes: []string{}}
	for i := range ready {
		c.Results = append(c.Results, newResult(s, &ready[i], runs[i]))
	}
	compare(c.Results)
	c.Recommendation = recommend(c.Results, ready, s.Goal)
	return c
}

// oddities says what is odd about a run.
func oddities(r *Run) []string {
	var notes []string
	if e := r.Exit; e != nil && e.Code > 0 && r.Err == "" {
		notes = append(notes, fmt.Sprintf("it ended with %s%s", e, r.said()))
	}
	if r.Killed {
		notes = append(notes, fmt.Sprintf("under %s it ignored SIGTERM and was killed", r.Variant))
	}
	if r.Lonely {
		notes = append(notes, fmt.Sprintf("under %s its largest process has %s", r.Variant, detect.NoBackgroundThread))
	}
	return notes
}

// once drops what was said before.
func once(notes []string) []string {
	kept := []string{}
	for _, n := range notes {
		if !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	return kept
}

// removedNotes says which variables of the environment no variant sees.
func removedNotes(environ []string, ready []variant.Ready) []string {
	notes := []string{}
	if len(ready) == 0 {
		return notes
	}
	_, removed := ready[0].Environ(environ)
	var names []string
	for _, v := range removed {
		names = append(names, v.Name+"="+v.Value)
	}
	if len(names) > 0 {
		notes = append(notes, "taken out of the environment, as each variant sets its own: "+strings.Join(names, " "))
	}
	return notes
}

// NoEffect finds a variant whose preload had no effect; nil if there is none.
func (c *Comparison) NoEffect() *Result {
	for i := range c.Results {
		if r := &c.Results[i]; slices.ContainsFunc(r.all, func(x *Run) bool { return x.NoEffect }) {
			return r
		}
	}
	return nil
}

// CommandFailed returns how the command ended if it failed by itself in every run,
// whatever the malloc; nil otherwise. What it held says nothing about a run that works.
func (c *Comparison) CommandFailed() *Exit { return commandFailed(c.Results) }

func commandFailed(results []Result) (first *Exit) {
	for _, r := range results {
		for _, x := range r.all {
			if x.Exit == nil || *x.Exit == (Exit{}) {
				return nil
			}
			if first == nil {
				first = x.Exit
			}
		}
	}
	return first
}

// Failed reports whether no run succeeded.
func (c *Comparison) Failed() bool {
	return !slices.ContainsFunc(c.Results, func(r Result) bool { return r.Runs > 0 })
}
