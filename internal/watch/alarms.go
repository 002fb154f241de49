package watch

import (
	"math"
	"time"
)

// who is a GPU of a rank of a run.
type who struct {
	session string
	gpu     int
}

// change is an alarm that was raised or cleared.
type change struct {
	rule   *Rule
	who    who // who caused it
	run    string
	raised bool
	at     time.Time
	value  float64
}

// engine evaluates rules over samples.
type engine struct {
	rules []*Rule
	gpus  map[who]*watched
	runs  map[runRule]map[who]bool // of rules per run: who has it raised
}

type runRule struct {
	run  string
	rule *Rule
}

// watched is what the engine knows of a GPU.
type watched struct {
	run    string
	row    Row
	seen   time.Time
	memory map[expr]*history
	states []state // of each rule
}

// state is that of one rule for one GPU.
type state struct {
	holding   bool
	since     time.Time
	sinceStep int64
	raised    bool
}

func newEngine(rules []*Rule) *engine {
	return &engine{rules: rules, gpus: map[who]*watched{}, runs: map[runRule]map[who]bool{}}
}

func (e *engine) of(w who, run string) *watched {
	g := e.gpus[w]
	if g == nil {
		g = &watched{run: run, memory: map[expr]*history{}, states: make([]state, len(e.rules))}
		e.gpus[w] = g
	}
	return g
}

// sample evaluates all rules for a sample that has come.
func (e *engine) sample(w who, run string, row Row, now time.Time) []change {
	g := e.of(w, run)
	g.row, g.seen = row, now
	m := &moment{row: &g.row, now: now, seen: now, fresh: true, memory: g.memory}
	var changes []change
	for i, r := range e.rules {
		changes = e.step(changes, w, g, i, r.value.eval(m), row.time())
	}
	return changes
}

// tick evaluates the rules whose value changes while nothing comes.
func (e *engine) tick(now time.Time) []change {
	var changes []change
	for w, g := range e.gpus {
		m := &moment{row: &g.row, now: now, seen: g.seen, memory: g.memory}
		for i, r := range e.rules {
			if r.silent {
				changes = e.step(changes, w, g, i, r.value.eval(m), now)
			}
		}
	}
	return changes
}

// step lets a rule go on with a value.
func (e *engine) step(changes []change, w who, g *watched, i int, v float64, at time.Time) []change {
	r, s := e.rules[i], &g.states[i]
	if math.IsNaN(v) {
		return changes
	}
	if s.raised {
		if r.above && v <= r.clear || !r.above && v >= r.clear {
			s.raised, s.holding = false, false
			return e.tell(changes, change{r, w, g.run, false, at, v})
		}
		return changes
	}
	if r.above && v <= r.bound || !r.above && v >= r.bound {
		s.holding = false
		return changes
	}
	if !s.holding {
		s.holding, s.since, s.sinceStep = true, at, g.row.V[Step]
	}
	if at.Sub(s.since) < r.holds || r.steps > 0 && (g.row.V[Step] == unknown || g.row.V[Step]-s.sinceStep < r.steps) {
		return changes
	}
	s.raised = true
	return e.tell(changes, change{r, w, g.run, true, at, v})
}

// tell adds a change, unless the run has been told by another rank.
func (e *engine) tell(changes []change, c change) []change {
	if !c.rule.perRun {
		return append(changes, c)
	}
	key := runRule{c.run, c.rule}
	raised := e.runs[key]
	before := len(raised) > 0
	if c.raised {
		if raised == nil {
			raised = map[who]bool{}
			e.runs[key] = raised
		}
		raised[c.who] = true
	} else {
		delete(raised, c.who)
	}
	if before != (len(raised) > 0) {
		changes = append(changes, c)
	}
	return changes
}

// ofRun reports whether a rule is about whole runs, and whether a rank of this one
// raises it.
func (e *engine) ofRun(run, rule string) (perRun, raised bool) {
	for _, r := range e.rules {
		if r.Name == rule && r.perRun {
			return true, len(e.runs[runRule{run, r}]) > 0
		}
	}
	return false, false
}

// restore says that an alarm was raised before this process began.
func (e *engine) restore(w who, run, rule string) {
	for i, r := range e.rules {
		if r.Name == rule {
			e.of(w, run).states[i].raised = true
			e.tell(nil, change{rule: r, who: w, run: run, raised: true})
		}
	}
}

// forget drops a session. Its alarms stay as they are.
func (e *engine) forget(session string) {
	for w, g := range e.gpus {
		if w.session != session {
			continue
		}
		delete(e.gpus, w)
		for _, r := range e.rules {
			delete(e.runs[runRule{g.run, r}], w)
		}
	}
}
