package answers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer"
	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/spelling"
)

// RanksDocument is what ashlar fleet ranks RUN --json prints.
type RanksDocument struct {
	Run string `json:"run"`
	// Odd are the ranks whose memory is unlike that of the others, launch by
	// launch, the one that is furthest out first.
	Odd      []OddRank `json:"odd"`
	Launches []Launch  `json:"launches"` // in order of appearance
}

// OddRank is a rank that is far from the median of its launch in a measure.
type OddRank struct {
	Rank    *int64  `json:"rank"` // null if the file does not say
	Commit  *string `json:"commit"`
	Attempt *int64  `json:"attempt"`
	File    string  `json:"file"`
	Hash    string  `json:"hash"`

	Measure    string   `json:"measure"`
	DeltaBytes *int64   `json:"delta_bytes"`
	DeltaCount *int     `json:"delta_count"`
	Fraction   *float64 `json:"delta_fraction"` // of the median; null if that is 0
}

// Launch is what ran at the same time: the ranks of one attempt at one commit. Its
// measures, and which ranks are odd in them, are those of ashlar diff.
type Launch struct {
	Commit      *string `json:"commit"`
	Attempt     *int64  `json:"attempt"`
	FirstSeenUS int64   `json:"first_seen_us"`
	Failed      int     `json:"failed"` // ranks with a request that failed
	*diff.Ranks
	All []LaunchedRank `json:"ranks"` // in the order of their numbers

	entries []*Entry // of All
}

// LaunchedRank is the file of a rank with the highest peak of reserved memory.
type LaunchedRank struct {
	Number *int64 `json:"rank"`
	Hash   string `json:"hash"`
	*diff.Rank
}

// Ranks compares the ranks of each launch of a run.
func Ranks(entries []Entry, run string) (*RanksDocument, error) {
	out := &RanksDocument{Run: run, Odd: []OddRank{}, Launches: []Launch{}}
	all := ordered(entries, func(e *Entry) bool { return e.Run == run && e.Summary.PeakReserved != nil })
	if len(all) == 0 {
		return nil, noRun(entries, run)
	}
	for _, launch := range launches(all) {
		l := compareRanks(launch)
		for _, o := range l.Odd {
			e := l.entries[o.Rank]
			out.Odd = append(out.Odd, OddRank{
				Rank: e.Rank, Commit: l.Commit, Attempt: l.Attempt, File: e.File, Hash: e.Hash,
				Measure: o.Measure, DeltaBytes: o.DeltaBytes, DeltaCount: o.DeltaCount, Fraction: o.Fraction,
			})
		}
		out.Launches = append(out.Launches, *l)
	}
	return out, nil
}

// noRun says that nothing is known of a run.
func noRun(entries []Entry, run string) error {
	var names []string
	refused := 0
	for i := range entries {
		if e := &entries[i]; e.Run == run {
			refused++
		} else if e.Run != "" && !slices.Contains(names, e.Run) {
			names = append(names, e.Run)
		}
	}
	slices.Sort(names)
	const shown = 8
	switch {
	case refused > 0:
		return fmt.Errorf("none of the %d files of run %q has numbers to compare: fleet query --where 'run = %q' --show file,error says why", refused, run, run)
	case len(names) == 0:
		return fmt.Errorf("there is no run %q: no file of the fleet names its run; add files with --run", run)
	}
	text := fmt.Sprintf("there is no run %q; ", run)
	if near := spelling.Nearest(run, names); near != "" {
		return fmt.Errorf("%sdid you mean %q?", text, near)
	}
	if len(names) > shown {
		return fmt.Errorf("%sthe first of %d are %s", text, len(names), strings.Join(names[:shown], ", "))
	}
	return fmt.Errorf("%sthere are %s", text, strings.Join(names, ", "))
}

// launches groups the entries of a run by commit and attempt, in their order.
func launches(all []*Entry) [][]*Entry {
	type key struct {
		commit  string
		attempt int64
	}
	return grouped(all, func(e *Entry) key { return key{e.Commit, orNone(e.Attempt)} })
}

// grouped puts entries with the same key together, in the order of the first of
// each.
func grouped[K comparable](all []*Entry, keyOf func(e *Entry) K) [][]*Entry {
	at := map[K]int{}
	var out [][]*Entry
	for _, e := range all {
		k := keyOf(e)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], e)
	}
	return out
}

func orNone(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// compareRanks compares the ranks of one launch.
func compareRanks(launch []*Entry) *Launch {
	first := launch[0]
	l := &Launch{Commit: answer.Known(first.Commit), Attempt: first.Attempt, FirstSeenUS: first.TimeUS(), entries: onePerRank(launch)}
	ranks := make([]*diff.Rank, len(l.entries))
	for i, e := range l.entries {
		ranks[i] = e.rank()
		if e.Failed() {
			l.Failed++
		}
		l.All = append(l.All, LaunchedRank{e.Rank, e.Hash, ranks[i]})
	}
	l.Ranks = diff.CompareNumbers(ranks)
	return l
}

// onePerRank returns the file with the highest peak of each rank, in the order of
// their numbers. A file that does not name its rank stands for itself.
func onePerRank(launch []*Entry) []*Entry {
	best := map[int64]*Entry{}
	var out []*Entry
	for _, e := range launch {
		if e.Rank == nil {
			out = append(out, e)
			continue
		}
		if old := best[*e.Rank]; old == nil || *e.Summary.PeakReserved >= *old.Summary.PeakReserved {
			best[*e.Rank] = e
		}
	}
	for _, e := range best {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(orNone(a.Rank), orNone(b.Rank)), cmp.Compare(a.TimeUS(), b.TimeUS()), cmp.Compare(a.Hash, b.Hash))
	})
	return out
}

// rankKey tells ranks of all runs apart. A file that does not name its rank is one
// of its own, here as in a launch.
func (e *Entry) rankKey() string {
	if e.Rank == nil {
		return e.Hash
	}
	return fmt.Sprintf("%s\x00%d", e.Run, *e.Rank)
}

// rank returns the numbers by which ashlar diff compares ranks.
func (e *Entry) rank() *diff.Rank {
	s := &e.Summary
	name := e.File
	if e.Rank != nil {
		name = fmt.Sprintf("rank %d", *e.Rank)
	}
	return &diff.Rank{
		File: e.File, Device: s.Device, Name: name, Events: s.Events, OOMs: s.OOMs, Partial: s.Partial,
		PeakAllocated: s.PeakAllocated, PeakRequested: s.PeakRequested, PeakReserved: *s.PeakReserved,
	}
}
