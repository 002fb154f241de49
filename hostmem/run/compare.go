package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/hostmem/variant"
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
	c := &Comparison{Command: s.Command, Repeat: repeat, Missing: []variant.Missing{}, Notes: removedNotes(s.Environ, ready)}
	runs := make([][]*Run, len(ready))
	done := 0
	for round := range repeat {
		for i := range ready {
			// Another variant begins each round: none is always after the same.
			n := (i + round) % len(ready)
			progress(done, ready[n].Name)
			r, err := s.one(ctx, &ready[n])
			if r != nil {
				c.notes(r)
			}
			if ctx.Err() != nil {
				c.Interrupted = true
				c.conclude(&s, ready, runs)
				return c, nil
			}
			if err != nil {
				return nil, err
			}
			runs[n] = append(runs[n], r)
			done++
		}
	}
	c.conclude(&s, ready, runs)
	return c, nil
}

func (c *Comparison) conclude(s *Spec, ready []variant.Ready, runs [][]*Run) {
	for i := range ready {
		c.Results = append(c.Results, newResult(s, &ready[i], runs[i]))
	}
	compare(c.Results)
	c.Recommendation = recommend(c.Results, ready)
}

// notes keeps what is odd about a run, once.
func (c *Comparison) notes(r *Run) {
	var notes []string
	if r.Killed {
		notes = append(notes, fmt.Sprintf("under %s it ignored SIGTERM and was killed", r.Variant))
	}
	for _, p := range r.Left {
		notes = append(notes, fmt.Sprintf("under %s it left process %d (%s) running: it is in another process group and was not signalled", r.Variant, p.PID, p.Name))
	}
	for _, n := range notes {
		if !slices.Contains(c.Notes, n) {
			c.Notes = append(c.Notes, n)
		}
	}
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

// Failed tells that not a single run succeeded.
func (c *Comparison) Failed() bool {
	return !slices.ContainsFunc(c.Results, func(r Result) bool { return r.Runs > 0 })
}
