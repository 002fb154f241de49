package answers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
)

// TuneDocument is what ashlar fleet tune RUN --json prints. Values are the goal's
// figure: bytes reserved or needed, or driver calls.
type TuneDocument struct {
	Run     string    `json:"run"`
	Commit  *string   `json:"commit"` // of the launch that is tuned: the last one
	Attempt *int64    `json:"attempt"`
	Goal    tune.Goal `json:"goal"`
	Ranks   int       `json:"ranks"`
	// Tried are the ranks that settings were tried on: one of those that are all
	// the same.
	Tried []TunedRank `json:"tried"`
	// Current are the recorded settings, nil if ranks have different ones;
	// Recommended those whose worst rank needs least. They may be the same.
	Current     *RunChoice `json:"current"`
	Recommended *RunChoice `json:"recommended"`
	// Others are what serves a single rank best, and what came next there.
	Others []RunChoice `json:"others"`
	Notes  []string    `json:"notes"`
}

// TunedRank is a rank, and what serves it best alone.
type TunedRank struct {
	Rank     *int64  `json:"rank"`
	File     string  `json:"file"`
	Hash     string  `json:"hash"`
	Alike    int     `json:"alike"` // ranks with the same peaks and events, itself included
	Settings string  `json:"settings"`
	Value    *uint64 `json:"value"`
}

// RunChoice are settings for all ranks.
type RunChoice struct {
	Settings  string  `json:"settings"`
	Export    string  `json:"export"`
	Value     *uint64 `json:"value"` // of the worst rank; nil if it fails
	WorstRank *int64  `json:"worst_rank"`
	WorstFile string  `json:"worst_file"`
	Recorded  bool    `json:"recorded"`
}

// Tuner tries settings on one file, wherever it likes.
type Tuner interface {
	// Tune is ashlar tune.
	Tune(ctx context.Context, hash string) (*tune.Answer, error)
	// Measure returns the figures of settings, as [tune.Measure] finds them, in
	// their order.
	Measure(ctx context.Context, hash string, settings []string) ([]*tune.Choice, error)
}

// Tune finds settings for all ranks of the last launch of a run: what serves any
// of them well is tried on each.
func Tune(ctx context.Context, entries []Entry, run string, by Tuner) (*TuneDocument, error) {
	all := ordered(entries, func(e *Entry) bool { return e.Run == run && e.Summary.PeakReserved != nil })
	if len(all) == 0 {
		return nil, noRun(entries, run)
	}
	groups := launches(all)
	launch := onePerRank(groups[len(groups)-1])
	d := &TuneDocument{
		Run: run, Commit: answer.Known(launch[0].Commit), Attempt: launch[0].Attempt, Ranks: len(launch),
		Tried: []TunedRank{}, Others: []RunChoice{}, Notes: []string{},
	}
	r := &runTuner{Tuner: by, document: d}
	if err := r.tuneRanks(ctx, launch); err != nil {
		return nil, err
	}
	choices, err := r.measure(ctx)
	if err != nil {
		return nil, err
	}
	r.choose(choices)
	return d, nil
}

// runTuner tunes the ranks of a launch.
type runTuner struct {
	Tuner
	document *TuneDocument
	ranks    []*Entry // that are tried
	settings []string // to be tried on all of them
	recorded string   // the settings of all ranks
	mixed    bool     // they differ
}

// tuneRanks searches for each rank alone, of ranks that are alike only for one.
func (r *runTuner) tuneRanks(ctx context.Context, launch []*Entry) error {
	for _, alike := range grouped(launch, func(e *Entry) string {
		s := &e.Summary
		return fmt.Sprintln(s.Events, s.OOMs, numberValue(s.PeakAllocated), numberValue(s.PeakReserved), numberValue(s.PeakRequested))
	}) {
		e := alike[0]
		a, err := r.Tune(ctx, e.Hash)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.note("%s is left out: %v", e.File, err)
			continue
		}
		if a.CutOff {
			r.note("the search on %s was cut off by the time given", e.File)
		}
		r.add(e, len(alike), a)
	}
	if len(r.ranks) == 0 {
		return fmt.Errorf("none of the %d ranks of run %q can be tuned; the first one: %s", len(launch), r.document.Run, r.document.Notes[0])
	}
	return nil
}

func (r *runTuner) note(format string, args ...any) {
	r.document.Notes = append(r.document.Notes, fmt.Sprintf(format, args...))
}

// add takes what a search found.
func (r *runTuner) add(e *Entry, alike int, a *tune.Answer) {
	d := r.document
	d.Goal = a.Goal
	d.Tried = append(d.Tried, TunedRank{e.Rank, e.File, e.Hash, alike, a.Recommended.Settings, a.Recommended.Value})
	r.mixed = r.mixed || len(r.ranks) > 0 && a.Current.Settings != r.recorded
	r.recorded = a.Current.Settings
	r.ranks = append(r.ranks, e)
	for _, c := range append([]*tune.Choice{a.Current, a.Recommended}, a.Others...) {
		if !slices.Contains(r.settings, c.Settings) {
			r.settings = append(r.settings, c.Settings)
		}
	}
}

// measure finds the worst rank under each of the settings.
func (r *runTuner) measure(ctx context.Context) ([]RunChoice, error) {
	out := make([]RunChoice, len(r.settings))
	for k, e := range r.ranks {
		got, err := r.Measure(ctx, e.Hash, r.settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.File, err)
		}
		for i, c := range got {
			value := valueOf(r.document.Goal, c)
			o := &out[i]
			if k == 0 || value == nil && o.Value != nil || value != nil && o.Value != nil && *value > *o.Value {
				*o = RunChoice{Settings: r.settings[i], Export: c.Export, Value: value, WorstRank: e.Rank, WorstFile: e.File}
			}
			o.Recorded = !r.mixed && o.Settings == r.recorded
		}
	}
	return out, nil
}

// valueOf returns the goal's figure; nil if the run fails.
func valueOf(g tune.Goal, c *tune.Choice) *uint64 {
	switch {
	case c.Need == nil || g == tune.SmallestLimit:
		return c.Need
	case g == tune.FewestCalls:
		calls := uint64(c.WarmCalls)
		return &calls
	}
	return &c.PeakReserved
}

// choose puts the settings in order: the worst rank needs least, then what is
// recorded, then what is simpler.
func (r *runTuner) choose(all []RunChoice) {
	slices.SortStableFunc(all, func(a, b RunChoice) int {
		return cmp.Or(
			compareValues(numberValue(a.Value), numberValue(b.Value), false),
			compareValues(boolValue(a.Recorded), boolValue(b.Recorded), true),
			cmp.Compare(strings.Count(a.Settings, ":"), strings.Count(b.Settings, ":")), cmp.Compare(a.Settings, b.Settings))
	})
	d := r.document
	d.Recommended = &all[0]
	for i := range all {
		if c := &all[i]; c.Recorded {
			d.Current = c
		} else if i > 0 {
			d.Others = append(d.Others, *c)
		}
	}
}
