package watch

import (
	"math"
	"slices"
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
	// due is what the rows of the store change and the stored alarms do not say
	// yet: this process saw no more of it than the rows.
	due []change
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
	here   time.Time // since when this process would have noticed a sample
	memory map[expr]*history
	states []state // of each rule
}

// state is that of one rule for one GPU.
type state struct {
	holding   bool
	since     time.Time
	sinceStep int64
	raised    bool
	noted     time.Time // when the last stored alarm was raised or cleared
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
	changes := e.takeDue(func(c change) bool { return c.who == w || c.rule.perRun && c.run == run })
	for i, r := range e.rules {
		changes = e.step(changes, w, g, i, r.value.eval(m), row.time())
	}
	return changes
}

// replay evaluates a sample of the store that came before this process began. What
// was stored as an alarm has been told; the rest is due. How long a job was silent
// between two rows is not known any more.
func (e *engine) replay(w who, run string, row Row, now time.Time) {
	g, at := e.of(w, run), row.time()
	g.row, g.seen, g.here = row, at, now
	m := &moment{row: &g.row, now: at, seen: at, fresh: true, memory: g.memory}
	for i, r := range e.rules {
		v := r.value.eval(m)
		if r.silent || !at.After(g.states[i].noted) {
			continue
		}
		for _, c := range e.step(nil, w, g, i, v, at) {
			before := len(e.due)
			e.takeDue(c.reverts)
			if len(e.due) == before {
				e.due = append(e.due, c)
			}
		}
	}
}

// reverts reports whether a change takes back another one.
func (c change) reverts(other change) bool {
	return c.rule == other.rule && c.raised != other.raised && (c.who == other.who || c.rule.perRun && c.run == other.run)
}

// takeDue removes changes that are due, and returns them.
func (e *engine) takeDue(which func(change) bool) (taken []change) {
	e.due = slices.DeleteFunc(e.due, func(c change) bool {
		if which(c) {
			taken = append(taken, c)
			return true
		}
		return false
	})
	return taken
}

// tick evaluates the rules whose value changes while nothing comes.
func (e *engine) tick(now time.Time) []change {
	changes := e.takeDue(func(change) bool { return true })
	for w, g := range e.gpus {
		if g.seen.IsZero() {
			continue // its alarm is stored, its rows are not
		}
		m := &moment{row: &g.row, now: now, memory: g.memory}
		for i, r := range e.rules {
			if !r.silent {
				continue
			}
			m.seen = g.seen
			if r.above && !g.states[i].raised && g.here.After(g.seen) {
				m.seen = g.here // until then the server was away, and perhaps not the job
			}
			changes = e.step(changes, w, g, i, r.value.eval(m), now)
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

// restore says that an alarm is stored: that it was raised, or cleared, at a time.
func (e *engine) restore(w who, run, rule string, raised bool, at time.Time) {
	for i, r := range e.rules {
		if r.Name != rule {
			continue
		}
		s := &e.of(w, run).states[i]
		if at.After(s.noted) {
			s.noted = at
		}
		if raised {
			s.raised = true
			e.tell(nil, change{rule: r, who: w, run: run, raised: true})
		}
	}
}

// forget drops a session. Its alarms stay as they are.
func (e *engine) forget(session string) {
	e.takeDue(func(c change) bool { return c.who.session == session })
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
