package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/answer/diff"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Ranks is the verdict over several files: the ranks of a job, or one process
// over time.
type Ranks struct {
	Summary string `json:"summary"`
	Failed  int    `json:"failed"` // how many files have a failed request
	// First is the position of the file that failed first; nil if nothing failed,
	// or if times do not tell.
	First *int `json:"first"`
	// SameCause reports whether all failures have the same cause at the same line;
	// nil with fewer than two.
	SameCause *bool `json:"same_cause"`
	// Odd are the files whose memory is unlike the others', as in ashlar diff; Rank
	// is the position in Files.
	Odd   []diff.Odd  `json:"odd"`
	Trend *Trend      `json:"trend"` // of three or more snapshots of one process, else nil
	Files []RankEntry `json:"files"`
	Notes []string    `json:"notes"`
}

// RankEntry is one file.
type RankEntry struct {
	Name          string  `json:"name"` // of the file, without its directory
	Rank          *int64  `json:"rank"` // if the file says
	Failed        bool    `json:"failed"`
	Cause         string  `json:"cause"`
	Line          *string `json:"line"`         // of the user's code that made the request
	FailedAt      *int64  `json:"failed_at_us"` // since the Unix epoch
	PeakAllocated *uint64 `json:"peak_allocated_bytes"`
	PeakReserved  *uint64 `json:"peak_reserved_bytes"`
	// Explanation is what explain prints for the file alone.
	Explanation json.RawMessage `json:"explanation"`

	clock string // whose time FailedAt is
	pid   int64  // 0 if not known
	live  *uint64
	taken int64 // when the snapshot was written
}

// RankSet collects the explanations of files one by one. It keeps no run.
type RankSet struct {
	names map[string]string
	table *diff.Table
	ranks []*diff.Rank
	of    []int // the entry of each rank
	all   []RankEntry
}

// NewRankSet begins a set of the files that will be added.
func NewRankSet(files []string) *RankSet {
	return &RankSet{names: diff.FileNames(files), table: diff.NewTable()}
}

// Add takes over what is needed of an explained file.
func (s *RankSet) Add(ctx context.Context, file string, c *Case, r *Report, document json.RawMessage) error {
	e := RankEntry{Name: s.names[file], Failed: r.Trigger != None, Cause: r.Cause, Explanation: document}
	e.times(c, r)
	if r.Line != nil {
		line := r.Line.String()
		e.Line = &line
	}
	if c.Facts != nil {
		e.Rank = copied(c.Facts.Rank)
		if c.Facts.PID != nil {
			e.pid = *c.Facts.PID
		}
	} else if c.Message != nil && c.Message.Rank >= 0 {
		rank := int64(c.Message.Rank)
		e.Rank = &rank
	}
	if c.Loaded != nil {
		rank, err := s.table.Rank(ctx, diff.Source{File: c.Name, Run: c.Loaded, Contradictions: c.contradictions}, e.Name)
		if err != nil {
			return err
		}
		s.ranks, s.of = append(s.ranks, rank), append(s.of, len(s.all))
		reserved := rank.PeakReserved
		e.PeakAllocated, e.PeakReserved = copied(rank.PeakAllocated), &reserved
		end := c.Loaded.Trace.Segments
		var live uint64
		for i := range end {
			live += end[i].AllocatedSize
		}
		e.live = &live
	} else {
		e.peaksOf(c, r)
	}
	s.all = append(s.all, e)
	return nil
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// times finds when a file failed, and when it was written.
func (e *RankEntry) times(c *Case, r *Report) {
	const device, log = "by the clocks of their hosts", "by the times in the logs"
	switch {
	case !e.Failed:
	case r.Failure != nil && r.Failure.Time != nil:
		e.FailedAt, e.clock = copied(r.Failure.Time), device
	case c.Facts != nil && c.Facts.TimeUS != nil:
		e.FailedAt, e.clock = copied(c.Facts.TimeUS), device
	case c.Message != nil && !c.Message.Time.IsZero():
		t := c.Message.Time.UnixMicro()
		e.FailedAt, e.clock = &t, log
	case c.Refusal != nil && !c.Refusal.Time.IsZero():
		t := c.Refusal.Time.UnixMicro()
		e.FailedAt, e.clock = &t, log
	}
	if c.Facts != nil && c.Facts.TimeUS != nil {
		e.taken = *c.Facts.TimeUS
	}
}

// peaksOf takes the peaks of a text, or what a message has at the failure.
func (e *RankEntry) peaksOf(c *Case, r *Report) {
	a := &textEvidence{Input: c.Input}
	for _, p := range []struct {
		key    string
		atLast *uint64
		to     **uint64
	}{
		{"allocated_bytes.all.peak", r.Evidence.Live, &e.PeakAllocated}, {"reserved_bytes.all.peak", r.Evidence.Reserved, &e.PeakReserved},
	} {
		if v := a.value(p.key); v != nil {
			*p.to = &v.Mid
		} else {
			*p.to = copied(p.atLast)
		}
	}
}

// FailedFirst returns the position of the file that failed first of those added,
// -1 if that is not known.
func (s *RankSet) FailedFirst() int {
	first, clock := -1, ""
	for i, e := range s.all {
		switch {
		case !e.Failed:
			continue
		case first < 0:
			first, clock = i, e.clock
		case e.clock != clock || clock == "": // times that cannot be compared
			return -1
		case *e.FailedAt < *s.all[first].FailedAt:
			first = i
		}
	}
	return first
}

// Verdict compares the files.
func (s *RankSet) Verdict() *Ranks {
	v := &Ranks{Odd: []diff.Odd{}, Files: s.all, Notes: []string{}}
	for _, e := range s.all {
		if e.Failed {
			v.Failed++
		}
	}
	said := []string{v.outcome(s.FailedFirst())}
	if text := v.causes(); text != "" {
		said = append(said, text)
	}
	if v.series(); v.Trend != nil {
		said = append(said, fmt.Sprintf("All are of one process, %d.", s.all[0].pid), v.Trend.Text("snapshots"))
	} else if len(s.ranks) > 1 {
		ranks := s.table.Ranks(s.ranks)
		v.Notes = append(v.Notes, ranks.Notes...)
		for _, o := range ranks.Odd {
			o.Rank = s.of[o.Rank]
			v.Odd = append(v.Odd, o)
		}
		if len(s.ranks) > 2 {
			said = append(said, v.oddText())
		}
	}
	v.Summary = strings.Join(said, " ")
	return v
}

// outcome says how many failed, and which one first.
func (v *Ranks) outcome(first int) string {
	n := len(v.Files)
	how := fmt.Sprintf("%s of %s files failed", count(v.Failed), count(n))
	switch {
	case v.Failed == 0:
		return fmt.Sprintf("None of %s files has a failed request.", count(n))
	case v.Failed == n:
		how = fmt.Sprintf("All %s files failed", count(n))
	}
	if first < 0 {
		return how + "; which one failed first is not known: their times are missing, or of different clocks."
	}
	v.First = &first
	e := &v.Files[first]
	if v.Failed == 1 {
		return fmt.Sprintf("%s: %s.", how, e.Name)
	}
	var next *RankEntry
	for i := range v.Files {
		if o := &v.Files[i]; i != first && o.Failed && (next == nil || *o.FailedAt < *next.FailedAt) {
			next = o
		}
	}
	later := *next.FailedAt - *e.FailedAt
	if later == 0 {
		return fmt.Sprintf("%s, %s and %s first, at the same moment %s.", how, e.Name, next.Name, e.clock)
	}
	return fmt.Sprintf("%s, %s first: %s before %s %s.", how, e.Name, units.Duration(float64(later)*1000), next.Name, e.clock)
}

// causes says whether all failures are of one kind.
func (v *Ranks) causes() string {
	var order []string
	who := map[string][]string{}
	for _, e := range v.Files {
		if !e.Failed {
			continue
		}
		key := strings.ReplaceAll(e.Cause, "_", " ")
		if e.Line != nil {
			key += " at " + *e.Line
		}
		if who[key] == nil {
			order = append(order, key)
		}
		who[key] = append(who[key], e.Name)
	}
	if v.Failed < 2 {
		return ""
	}
	same := len(order) == 1
	v.SameCause = &same
	if same {
		return fmt.Sprintf("All failures are alike: %s.", order[0])
	}
	parts := make([]string, len(order))
	for i, key := range order {
		parts[i] = fmt.Sprintf("%s (%s)", key, few(who[key]))
	}
	return fmt.Sprintf("The failures differ: %s.", strings.Join(parts, "; "))
}

// few names the first of a list.
func few(names []string) string {
	const shown = 3
	if more := len(names) - shown; more > 0 {
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %s more", count(more))
	}
	return strings.Join(names, ", ")
}

// oddText names the files whose memory is odd.
func (v *Ranks) oddText() string {
	var names []string
	for _, o := range v.Odd {
		if name := v.Files[o.Rank].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "No file's memory is unlike the others'."
	}
	return fmt.Sprintf("Unlike the others in memory: %s.", few(names))
}

// series finds the trend if all files are of one process.
func (v *Ranks) series() {
	const least = 3
	if len(v.Files) < least {
		return
	}
	files := slices.Clone(v.Files)
	for _, e := range files {
		if e.pid == 0 || e.pid != files[0].pid || e.live == nil || e.taken == 0 || cmp.Compare(deref(e.Rank), deref(files[0].Rank)) != 0 {
			return
		}
	}
	slices.SortStableFunc(files, func(a, b RankEntry) int { return cmp.Compare(a.taken, b.taken) })
	values := make([]uint64, len(files))
	for i, e := range files {
		values[i] = *e.live
	}
	v.Trend = TrendOf(values)
}

func deref(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

// RanksDocument is what ashlar explain --json prints for several files.
type RanksDocument struct {
	Kind string `json:"kind"`
	*Ranks
	Skipped []diff.Skipped `json:"skipped"`
}

// NewRanksDocument says which files could not be explained.
func NewRanksDocument(v *Ranks, skipped []diff.Skipped) *RanksDocument {
	return &RanksDocument{"ranks", v, append([]diff.Skipped{}, skipped...)}
}
