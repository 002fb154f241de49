package whatif

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/findings"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// EmptyCache says when a replay calls empty_cache(). The zero value is as
// recorded.
type EmptyCache struct {
	When string // none, step:N or every:N

	kind string
	n    int
}

// ParseEmptyCache reads none, step:N (once, before step N) or every:N (before
// every Nth step).
func ParseEmptyCache(text string) (EmptyCache, error) {
	kind, number, numbered := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	valid := false
	switch kind {
	case "none":
		valid = !numbered
	case "step":
		valid = err == nil && n >= 0
	case "every":
		valid = err == nil && n > 0
	}
	if !valid {
		return EmptyCache{}, fmt.Errorf("%q: write none (no call), step:N (once, before step N) or every:N (before every Nth step)", text)
	}
	return EmptyCache{text, kind, n}, nil
}

// EmptyCacheCalls says what became of the calls of empty_cache().
type EmptyCacheCalls struct {
	When     string `json:"when"`     // none, step:N or every:N
	Recorded int    `json:"recorded"` // calls in the recording that released something
	Made     int    `json:"made"`     // in the results that have them changed
}

// apply returns the program of a run with its calls of empty_cache() changed.
func (c EmptyCache) apply(ctx context.Context, r *run.Checked) (*replay.Program, *EmptyCacheCalls, error) {
	p := r.Program
	var events []int
	if c.kind != "none" {
		steps, err := r.Steps(ctx)
		if err != nil {
			return nil, nil, err
		}
		if events, err = c.events(steps.List); err != nil {
			return nil, nil, err
		}
	}
	return p.EmptyCacheAt(events), &EmptyCacheCalls{When: c.When, Recorded: len(p.EmptyCaches()), Made: len(events)}, nil
}

// events returns the first events of the steps before which the cache is emptied.
func (c EmptyCache) events(steps []findings.Step) ([]int, error) {
	var events []int
	for _, s := range steps {
		if c.kind == "step" && s.Number == c.n || c.kind == "every" && s.Number%c.n == 0 {
			events = append(events, s.Begin)
		}
	}
	switch {
	case len(steps) == 0:
		return nil, fmt.Errorf("--empty-cache %s: the recording shows no steps", c.When)
	case len(events) == 0:
		return nil, fmt.Errorf("--empty-cache %s: no such step; the recording has steps %s to %s", c.When,
			units.Count(int64(steps[0].Number)), units.Count(int64(steps[len(steps)-1].Number)))
	}
	return events, nil
}
