package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/answer/policies"
	"github.com/ashlar-mem/ashlar/internal/answer/tune"
	"github.com/ashlar-mem/ashlar/internal/answer/whatif"
	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/run"
	"github.com/ashlar-mem/ashlar/internal/view/http"
	"github.com/ashlar-mem/ashlar/settings"
)

// maxVariants is how many settings one question may have: more than anybody
// compares by eye. For more there is tune.
const maxVariants = 64

// conditions are the bounds of a what-if as the page has them: nil if the
// recording's own are meant.
type conditions struct{ limit, memory *uint64 }

// conditions reads limit and device_memory.
func (q *query) conditions() conditions {
	return conditions{q.bound("limit"), q.bound("device_memory")}
}

// bound reads a size, or none.
func (q *query) bound(name string) *uint64 {
	text := q.values.Get(name)
	if text == "" {
		return nil
	}
	n, err := whatif.ParseBound(text)
	if err != nil {
		q.bad("%s is %q: %v", name, text, err)
	}
	return &n
}

// bounds returns the bounds for a run.
func (c conditions) bounds(r *run.Checked) (whatif.Limit, whatif.Memory) {
	return whatif.Bounds(r, c.limit, c.memory)
}

// replayable says why a run cannot be replayed; nil if it can.
func (r *pageRun) replayable() error {
	switch {
	case r.trace.Host:
		return refuse(http.StatusUnprocessableEntity, "host memory has another allocator, which cannot be replayed: choose a device")
	case r.events() == 0:
		return refuse(http.StatusUnprocessableEntity,
			"the file has no events, so there is nothing to replay: record with torch.cuda.memory._record_memory_history()")
	}
	return nil
}

// checked returns the run with its calls, checked against the recording.
func (r *pageRun) checked(ctx context.Context) (*run.Checked, error) {
	if err := r.replayable(); err != nil {
		return nil, err
	}
	c, err := r.loaded.Check(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, refuse(http.StatusUnprocessableEntity, "the events cannot be replayed: %v", err)
	}
	return c, nil
}

// whatif is api/whatif.
func (r *request) whatif() error {
	q, names, c, refused := r.question()
	if r.query.err != nil {
		return r.query.err
	}
	return r.answer(func(ctx context.Context, out *lines) ([]byte, error) {
		for _, x := range refused {
			out.send("refused", x)
		}
		of, err := r.run.checked(ctx)
		if err != nil {
			return nil, err
		}
		q.Limit, q.Memory = c.bounds(of)
		if out != nil {
			q.Progress = func(done, total int) { out.progress(progress{Done: done, Total: total}) }
		}
		a, err := whatif.Ask(ctx, of, q)
		var unfit *whatif.SettingError
		for out != nil && errors.As(err, &unfit) && leftOut(&q, unfit.Conf) {
			out.send("refused", refusal{unfit.Conf, unfit.Error()})
			a, err = whatif.Ask(ctx, of, q)
		}
		switch {
		case errors.As(err, &unfit):
			return nil, badRequest("%v", err)
		case err != nil:
			return nil, err
		case a.Interrupted && out == nil:
			return nil, context.Cause(ctx)
		}
		settings := len(a.Results)
		if err := addPolicies(ctx, of, &q, names, a); err != nil {
			return nil, err
		}
		body, err := r.document("whatif", whatif.NewDocument(r.run.subject(), a), out)
		if err != nil || out == nil || a.Interrupted {
			return body, err
		}
		tell := func(c choice) error {
			_, err := r.document("choice", c, out)
			return err
		}
		if err := measureAll(ctx, of, &q, tell); err != nil {
			return nil, err
		}
		return nil, measurePolicies(ctx, of, &q, names, settings, tell)
	})
}

// planBudget is how long a static plan is searched for: the page waits.
const planBudget = 2 * time.Second

// askPolicies asks what other allocators do, under the conditions of a what-if.
func askPolicies(ctx context.Context, of *run.Checked, q *whatif.Question, names []string, limits bool) (*policies.Answer, error) {
	p := policies.Question{Policies: names, Limit: q.Limit, Memory: q.Memory, SkipOOM: q.SkipOOM, NoLimits: !limits, Budget: planBudget}
	if !limits {
		p.Points = q.Points
	}
	return policies.Ask(ctx, of, p)
}

// addPolicies puts the results of other allocators behind those of settings.
func addPolicies(ctx context.Context, of *run.Checked, q *whatif.Question, names []string, a *whatif.Answer) error {
	if len(names) == 0 {
		return nil
	}
	p, err := askPolicies(ctx, of, q, names, false)
	if err != nil {
		return err
	}
	for _, r := range p.Results {
		if r.WhyNot != nil {
			a.Notes = append(a.Notes, r.Policy+": "+*r.WhyNot)
			a.NotRun = append(a.NotRun, r.Policy)
			continue
		}
		a.Results = append(a.Results, r.Variant(p))
		for _, n := range r.Notes {
			a.Notes = append(a.Notes, r.Policy+": "+n)
		}
	}
	a.Interrupted, a.NotRun = a.Interrupted || p.Interrupted, append(a.NotRun, p.NotRun...)
	return nil
}

// measurePolicies finds the smallest limits of other allocators, whose results come
// after those of settings.
func measurePolicies(ctx context.Context, of *run.Checked, q *whatif.Question, names []string, settings int, tell func(choice) error) error {
	if len(names) == 0 {
		return nil
	}
	p, err := askPolicies(ctx, of, q, names, true)
	if err != nil {
		return err
	}
	for _, r := range p.Results {
		if r.WhyNot == nil {
			if err := tell(choice{settings, r.Choice()}); err != nil {
				return err
			}
			settings++
		}
	}
	return nil
}

// refusal is settings that cannot be tried. In an answer in lines it comes for
// itself, and the others are tried.
type refusal struct {
	Set   string `json:"set"`
	Error string `json:"error"`
}

// leftOut takes settings out of a question and reports whether they were in it.
func leftOut(q *whatif.Question, conf string) bool {
	before := len(q.Settings)
	q.Settings = slices.DeleteFunc(q.Settings, func(s whatif.Setting) bool { return s.Conf == conf })
	return len(q.Settings) < before
}

// question reads the parameters of a what-if, and the names of other allocators that
// stand among the settings. The bounds need the program.
func (r *request) question() (whatif.Question, []string, conditions, []refusal) {
	confs, c := r.query.values["set"], r.query.conditions()
	q := whatif.Question{
		SkipOOM: r.query.choice("on_oom", whatif.OnOOMDie, whatif.OnOOMSkip) == whatif.OnOOMSkip,
		Points:  r.query.integer("curve", 0, 1, maxWidth),
	}
	switch {
	case len(confs) == 0 && c == (conditions{}) && !r.query.flag("recorded"):
		r.query.bad("there is nothing to try: add settings, or a limit or a device memory for the recorded ones")
	case len(confs) > maxVariants:
		r.query.bad("%d settings are more than %d: try fewer at a time, or let tune search", len(confs), maxVariants)
	}
	var (
		refused []refusal
		names   []string
	)
	inLines := r.query.flag("stream")
	for _, conf := range confs {
		s, err := whatif.ParseSetting(conf)
		switch {
		case policies.HasCurve(conf):
			names = append(names, conf)
		case err == nil:
			q.Settings = append(q.Settings, s)
		case inLines:
			refused = append(refused, refusal{conf, err.Error()})
		default:
			r.query.bad("%v", err)
		}
	}
	return q, names, c, refused
}

// choice is what a setting needs, and which result of the what-if it belongs to.
type choice struct {
	Result int `json:"result"`
	*tune.Choice
}

// measureAll finds for each of the settings what tune would find for it, and
// reports it as soon as it is known: the curves do not wait for it.
func measureAll(ctx context.Context, r *run.Checked, q *whatif.Question, tell func(choice) error) error {
	p := r.Program
	all := []settings.Settings{p.Settings}
	for _, s := range q.Settings {
		all = append(all, s.Parsed)
	}
	lower, _ := p.PeakLive()
	err := parallel.Each(ctx, parallel.AllCores, len(all), func(i int) error {
		c, err := tune.Measure(ctx, r, all[i], q.Memory.Value(), lower)
		if err != nil {
			return err
		}
		made := tune.NewChoice(r, c)
		made.Recorded = i == 0
		return tell(choice{i, made})
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// How long tune may search.
const (
	defaultBudget = time.Minute
	maxBudget     = 10 * time.Minute
)

// tune is api/tune.
func (r *request) tune() error {
	c, budget := r.query.conditions(), r.query.duration("budget", defaultBudget, maxBudget)
	goal, err := tune.ParseGoal(r.query.values.Get("goal"))
	if err != nil {
		r.query.bad("goal: %v", err)
	}
	if r.query.err != nil {
		return r.query.err
	}
	return r.answer(func(ctx context.Context, out *lines) ([]byte, error) {
		of, err := r.run.checked(ctx)
		if err != nil {
			return nil, err
		}
		limit, memory := c.bounds(of)
		o := tune.Options{Goal: goal, Limit: limit.Value(), DeviceMemory: memory.Value(), Budget: budget}
		if out != nil {
			begin := time.Now()
			o.Progress = func(n int) {
				out.progress(progress{Done: n, Seconds: time.Since(begin).Seconds(), Budget: budget.Seconds()})
			}
		}
		found, err := tune.Search(ctx, of, o)
		switch {
		case found == nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case found == nil:
			return nil, err
		case ctx.Err() != nil && out == nil:
			return nil, context.Cause(ctx)
		}
		a := tune.NewAnswer(of, found, limit, memory)
		a.Interrupted = ctx.Err() != nil
		return r.document("tune", tune.NewDocument(r.run.subject(), a), out)
	})
}

// duration reads a time such as 10s.
func (q *query) duration(name string, missing, most time.Duration) time.Duration {
	text := q.values.Get(name)
	if text == "" {
		return missing
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > most {
		q.bad("%s is %q: write a time such as 10s, at most %v", name, text, most)
		return missing
	}
	return d
}
