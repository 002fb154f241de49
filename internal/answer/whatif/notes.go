package whatif

import (
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/replay/start"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// SelfCheck says how much of the recording the model reproduces under the
// recorded settings.
type SelfCheck struct {
	Events    int    `json:"events"`
	Identical int    `json:"identical"` // events, from the first one on
	Note      string `json:"note"`
	Complete  bool   `json:"-"` // all events, and the state at the end
}

// NewSelfCheck describes the check of a program.
func NewSelfCheck(p *replay.Program) SelfCheck {
	r := p.Check
	s := SelfCheck{Events: r.Events, Identical: r.IdenticalEvents, Complete: r.Identical}
	s.Note = fmt.Sprintf("the model reproduces %s of %s recorded events", units.Count(int64(s.Identical)), units.Count(int64(s.Events)))
	if r.Identical {
		return s
	}
	what := "the recording differs"
	if r.First != nil {
		what = r.First.What
	}
	if r.IdenticalEvents == r.Events {
		s.Note += fmt.Sprintf(", but not the final state (%s): the events do not show everything that happened, so peaks may be off", what)
		return s
	}
	s.Note += fmt.Sprintf("; at event %s they diverge (%s). The answers rest on a model that is verified only up to there: "+
		"peaks and failures after it are estimates (ashlar verify shows the difference)", units.Count(int64(r.IdenticalEvents)), what)
	return s
}

// RestsOn says what any answer from a checked program rests on.
func RestsOn(p *replay.Program) []string {
	notes := append([]string{}, p.Check.Notes...)
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if p.Start.Kind == start.Rebuilt {
		add("the replays begin with the %s reserved before the first event, laid out by the recorded settings: "+
			"the settings tried here could not change that, so differences may be larger in a whole run", units.Size(p.Start.Reserved()))
	}
	if p.Trace.Partial {
		add("the file ends within the events: what comes after them is not replayed")
	}
	if p.Ignored > 0 {
		add("%s events contradict earlier ones and are left out", units.Count(int64(p.Ignored)))
	}
	if EndsInOOM(p.Trace) {
		add("the recording ends at a failed request: what passes gets at least that far")
	}
	if p.Settings.PerProcessMemoryFraction < 1 {
		add("the recording has per_process_memory_fraction:%v; the limit replaces it here", p.Settings.PerProcessMemoryFraction)
	}
	return notes
}

// ReleasedAtStart says what became of the start of a program under a limit, or
// on a device, with less than was reserved there.
func ReleasedAtStart(p *replay.Program, released uint64) string {
	reserved := p.Start.Reserved()
	return fmt.Sprintf("where the limit or the device is smaller than the %s reserved before the first event, the %s of it that was cached is released first, "+
		"and the replay begins with %s: peaks, driver calls and driver time count from there", units.Size(reserved), units.Size(released), units.Size(reserved-released))
}

// notes says what else the answer rests on. The first outcome is that under the
// recorded settings; those that there was no time for are nil.
func (q *Question) notes(r *run.Checked, outcomes []*replay.Outcome) []string {
	p := r.Program
	notes, recorded := RestsOn(p), outcomes[0]
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if i := slices.IndexFunc(outcomes, func(o *replay.Outcome) bool { return o != nil && o.StartReleased > 0 }); i >= 0 {
		notes = append(notes, ReleasedAtStart(p, outcomes[i].StartReleased))
	}
	if slices.ContainsFunc(q.Settings, func(s Setting) bool { return s.Parsed.PerProcessMemoryFraction < 1 }) {
		add("per_process_memory_fraction is a fraction of the device memory named here")
	}
	for _, s := range q.Settings {
		if len(s.Skipped) > 0 {
			notes = append(notes, SkippedText(s.Conf, s.Skipped))
		}
	}
	if q.collectsWithoutLimit(p) {
		add("garbage_collection_threshold has no effect without a limit")
	}
	if off := q.recordedIsOff(r, recorded); off != "" {
		notes = append(notes, off)
	}
	return notes
}

// collectsWithoutLimit: a threshold is a part of the limit (spec 7.3).
func (q *Question) collectsWithoutLimit(p *replay.Program) bool {
	if q.Limit.Value() > 0 {
		return false
	}
	collects := func(s settings.Settings) bool {
		return s.GarbageCollectionThreshold > 0 && s.PerProcessMemoryFraction >= 1
	}
	return collects(p.Settings) || slices.ContainsFunc(q.Settings, func(s Setting) bool { return collects(s.Parsed) })
}

// recordedIsOff compares the outcome under the recorded settings with what was
// recorded, if the conditions are the recorded ones too. The check follows the
// recorded addresses and answers of the driver, this replay its own.
func (q *Question) recordedIsOff(r *run.Checked, o *replay.Outcome) string {
	if o == nil || r.Trace.Partial || !q.asRecorded(r) {
		return ""
	}
	want := r.Peaks.Reserved.Value
	switch {
	case o.Fails && !o.First.RecordedToo:
		return fmt.Sprintf("under its own settings the replay fails at event %s, where the recording did not: "+
			"the limit or the device memory was not what is assumed here", units.Count(int64(o.First.Event)))
	case !q.SkipOOM && o.Fails && !EndsInOOM(r.Trace):
		return "" // the recording went on, the replay did not
	case o.Reserved.Bytes != want:
		return fmt.Sprintf("under its own settings the replay reserves %s at its peak, the recording %s: "+
			"ignore differences of that size", units.Size(o.Reserved.Bytes), units.Size(want))
	}
	return ""
}

// asRecorded reports whether the bounds are those of the recording, as far as its
// events show them.
func (q *Question) asRecorded(r *run.Checked) bool {
	own := func(b, recorded Bound) bool {
		return b.Source != Given && (b.Source != None || recorded.Source == None)
	}
	return own(q.Limit.Bound, inferredLimit(r.Program.Check).Bound) && own(q.Memory.Bound, inferredMemory(r.Peaks).Bound)
}
