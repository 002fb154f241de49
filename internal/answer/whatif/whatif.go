package whatif

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/settings"
)

// Setting is a text for PYTORCH_CUDA_ALLOC_CONF and what it means.
type Setting struct {
	Conf    string
	Parsed  settings.Settings
	Skipped []string // keys of later releases, which are left out
}

// ParseSetting reads a text as PyTorch does, but leaves out keys that only later
// releases know. The error is a *[SettingError].
func ParseSetting(conf string) (Setting, error) {
	s, skipped, err := settings.ParseKnown(conf)
	if slices.ContainsFunc(skipped, func(key string) bool { return settings.Since(key) == 0 }) {
		_, err = settings.Parse(conf) // a misspelt one
	}
	if err != nil {
		return Setting{}, &SettingError{conf, err}
	}
	return Setting{conf, s, skipped}, nil
}

// SkippedText says which keys of a text are left out.
func SkippedText(conf string, skipped []string) string {
	keys := make([]string, 0, len(skipped))
	for _, k := range skipped {
		if v := settings.Since(k); v != 0 {
			k += fmt.Sprintf(" (of PyTorch %v)", v)
		}
		keys = append(keys, k)
	}
	return fmt.Sprintf("not modelled, and left out of %q: %s; the rest holds", conf, strings.Join(keys, ", "))
}

// SettingError says which settings cannot be used, and why.
type SettingError struct {
	Conf string
	Err  error // of package settings or replay
}

func (e *SettingError) Error() string {
	place := ""
	var refused *settings.Error
	if errors.As(e.Err, &refused) {
		place = fmt.Sprintf(", token %d", refused.Pos+1)
	}
	return fmt.Sprintf("settings %q%s: %v", e.Conf, place, e.Err)
}

func (e *SettingError) Unwrap() error { return e.Err }

// Question is what is asked about a recorded run.
type Question struct {
	Settings []Setting // to be tried beside the recorded ones
	Limit    Limit
	Memory   Memory
	SkipOOM  bool // leave failing requests out instead of ending at the first
	Points   int  // length of the curves; 0 makes none
	// EmptyCache changes the calls of empty_cache(): in a run under the recorded
	// settings, beside the one as recorded, and under all others.
	EmptyCache EmptyCache
	// NoCache, Bucket and Order are changes of the program, each tried by itself:
	// without the cache, with sizes padded, with what stays allocated first.
	NoCache bool
	Bucket  Bucket
	Order   bool
	// Overflow is how much host memory serves requests that fail, in a run of its own
	// under the recorded settings with expandable segments; 0 makes none.
	Overflow uint64

	Workers  int                   // 0: as many as there are cores
	Progress func(done, total int) // is called with the number of settings done, never concurrently
}

// Answer is what the replays show.
type Answer struct {
	SelfCheck    SelfCheck `json:"self_check"`
	Limit        Limit     `json:"limit"`
	DeviceMemory Memory    `json:"device_memory"`
	OnOOM        string    `json:"on_oom"` // OnOOMDie or OnOOMSkip
	// EmptyCache is nil if the calls of empty_cache() are the recorded ones.
	EmptyCache *EmptyCacheCalls `json:"empty_cache"`
	// Changes are those of the program beside EmptyCache.
	Changes []Change `json:"changes"`
	// Overflow is nil if nothing was asked about it.
	Overflow *Overflow `json:"overflow"`
	// Interrupted: the context ended before all was done. NotRun are the settings
	// without a result.
	Interrupted bool      `json:"interrupted"`
	NotRun      []string  `json:"not_run"`
	Notes       []string  `json:"notes"` // what else the answer rests on
	Results     []*Result `json:"results"`
}

// What happens at a request that fails.
const (
	OnOOMDie  = "die"  // the run ends
	OnOOMSkip = "skip" // the request is left out, with its free
)

// Ask replays a run under its recorded settings and under those of the
// question. Results are in that order, whatever the number of cores. When the
// context ends, what is known is returned.
//
// The error is a *[SettingError], or says why nothing can be replayed.
func Ask(ctx context.Context, r *run.Checked, q Question) (*Answer, error) {
	p := r.Program
	runs, changes, calls, err := q.trials(ctx, r)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		if err := p.Runnable(q.conditions(runs[i].Setting)); err != nil {
			if p.Runnable(q.conditions(Setting{Parsed: settings.Default()})) != nil {
				return nil, err // whatever the settings
			}
			return nil, &SettingError{runs[i].Conf, err}
		}
	}
	outcomes, err := q.runAll(ctx, runs)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		SelfCheck: NewSelfCheck(p), Limit: q.Limit, DeviceMemory: q.Memory, OnOOM: OnOOMDie, EmptyCache: calls, Changes: changes,
		NotRun: []string{}, Results: []*Result{},
	}
	if q.SkipOOM {
		a.OnOOM = OnOOMSkip
	}
	for i, o := range outcomes {
		if o == nil {
			a.Interrupted = true
			a.NotRun = append(a.NotRun, runs[i].Conf)
			continue
		}
		out := NewResult(r, o)
		out.Settings, out.Recorded = runs[i].Conf, i == 0
		if out.Recorded {
			out.Needs, out.After = "", AfterNothing // it did take them
		}
		out.EmptyCache = runs[i].emptyCache
		out.setChange(runs[i].change)
		a.Results = append(a.Results, out)
	}
	if q.Overflow > 0 && !a.Interrupted {
		a.Overflow, err = AskOverflow(ctx, r, q, q.Overflow)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	a.Notes = q.notes(r, outcomes)
	return a, nil
}

// recordedSetting returns the recorded settings. Their share of the device is left
// out: it is of the whole device, which is in no file, and it shows as a limit.
func recordedSetting(p *replay.Program) Setting {
	recorded := p.Settings
	recorded.PerProcessMemoryFraction = 1
	return Setting{Conf: p.Settings.String(), Parsed: recorded}
}

func (q *Question) conditions(s Setting) replay.Conditions {
	return replay.Conditions{
		Settings: s.Parsed, Limit: q.Limit.Value(), DeviceMemory: q.Memory.Value(), SkipOOM: q.SkipOOM, Points: q.Points,
	}
}

// runAll runs the trials. Those that the context left no time for have no outcome.
// Of several errors it returns that of the first trial.
func (q *Question) runAll(ctx context.Context, runs []trial) ([]*replay.Outcome, error) {
	outcomes := make([]*replay.Outcome, len(runs))
	done := parallel.Counter(len(runs), q.Progress)
	err := parallel.Each(ctx, q.Workers, len(runs), func(i int) error {
		o, err := runs[i].run(ctx, q.conditions(runs[i].Setting))
		switch {
		case err == nil:
			outcomes[i] = o
		case ctx.Err() == nil:
			err = &SettingError{runs[i].Conf, err}
		default:
			err = nil // there was no time
		}
		done()
		return err
	})
	if refused := (*SettingError)(nil); errors.As(err, &refused) {
		return nil, err
	}
	return outcomes, nil
}
