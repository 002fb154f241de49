package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/settings"
)

// Question is what is asked about a model.
type Question struct {
	Model *model.Model
	// Checkpoint is there instead of Model where no family describes it: see
	// AskRough.
	Checkpoint *checkpoint.Checkpoint
	Options    Options
	Capacity   Capacity
	Settings   settings.Settings // of the allocator
	Conf       string            // the same as it was given
	Weights    *Weights          // the checkpoint's files; nil if they are not known
	// Points is the length of the timeline; 0 makes none.
	Points int
	// NoLevers leaves out what could be changed.
	NoLevers bool
	// Assumed and NotModelled are for the answer's lists: what is known of them
	// before anything is planned.
	Assumed, NotModelled []string
	// Progress is called each time a job was planned, by several goroutines.
	Progress func()
	// Events is called now and then with the number of events that a job has so
	// far, by several goroutines.
	Events func(n int)

	execute executor
	chosen  []string // what the weights' files decided
}

// Answer is a plan: what the ledger and the engine say about a job.
type Answer struct {
	Outcome

	// LeavesOut are parts of the model that are not planned.
	LeavesOut []string `json:"leaves_out"`

	Model      string `json:"model"`
	Parameters int64  `json:"parameters"`
	Preset     string `json:"preset"`
	// Beside is memory that the allocator does not see: managed, or on the host.
	Beside []Beside `json:"beside"`
	// Measured: runs of this kind were measured against the plan. RestsOn names
	// the sources of what was not.
	Measured    bool     `json:"measured"`
	RestsOn     []string `json:"rests_on"`
	Assumed     []string `json:"assumed"`
	NotModelled []string `json:"not_modelled"`
}

// prepare checks what all answers need.
func (q *Question) prepare() error {
	if q.Model == nil {
		return errors.New("there is no model to plan")
	}
	if q.Settings == (settings.Settings{}) {
		q.Settings = settings.Default()
	}
	q.Model = q.Weights.quantise(q.Model, q.Options)
	o, chosen, err := q.Weights.choose(q.Options)
	if err != nil {
		return err
	}
	q.Options, q.chosen = o, append(q.chosen, chosen...)
	return q.Capacity.Fraction(&q.Settings)
}

// planned is a job with its ledger and what the engine makes of it.
type planned struct {
	question *Question
	job      *model.Job
	run      *executed
	Played
	variants *variants // of the job that was asked about; nil of others
}

// plan runs a job symbolically and through the engine, without a limit.
func (q *Question) plan(ctx context.Context, o Options, points int) (*planned, []string, error) {
	j, assumed, err := o.Job(q.Model)
	if err != nil {
		return nil, nil, err
	}
	p, err := q.planJob(ctx, j, points)
	if err == nil {
		err = q.Weights.check(q.Model, p.run.weights)
	}
	return p, append(slices.Clone(q.chosen), assumed...), err
}

func (q *Question) planJob(ctx context.Context, j *model.Job, points int) (*planned, error) {
	run, err := q.run(ctx, j)
	if err != nil {
		return nil, err
	}
	return q.planRun(ctx, j, run, points)
}

// run runs a job symbolically.
func (q *Question) run(ctx context.Context, j *model.Job) (*executed, error) {
	execute := q.execute
	if execute == nil {
		execute = watched(q.Events)
	}
	q.Capacity.equip(j)
	return execute(ctx, j)
}

// planRun puts a job that was run through the engine.
func (q *Question) planRun(ctx context.Context, j *model.Job, run *executed, points int) (*planned, error) {
	p := &planned{question: q, job: j, run: run}
	p.Played = q.played(j, run.ledger)
	err := p.Play(ctx, points)
	if q.Progress != nil {
		q.Progress()
	}
	return p, err
}

// played is a ledger of a job before it is played.
func (q *Question) played(j *model.Job, l *ledger.Ledger) Played {
	return Played{Ledger: l, Settings: q.Settings, Conf: q.Conf, Capacity: q.Capacity, Group: groupOf(j)}
}

// maxLeverEvents is the most events of a run that is planned again for each lever:
// a dozen levers take a dozen times its time and memory.
const maxLeverEvents = 4_000_000

// oneByOne is from how many events on levers are planned one after the other: the
// graph of each run takes some hundred MB then.
const oneByOne = 100_000

// Ask plans a job. The error says in one line what is wrong with the question.
func Ask(ctx context.Context, q Question) (*Answer, error) {
	if err := q.prepare(); err != nil {
		return nil, err
	}
	p, assumed, err := q.plan(ctx, q.Options, q.Points)
	if err != nil {
		return nil, err
	}
	p.variants = &variants{}
	a := p.answer(assumed)
	var levers []lever
	if events := len(p.run.ledger.Events); events > maxLeverEvents {
		a.NotModelled = append(a.NotModelled, fmt.Sprintf("levers: the run has %d events, and each lever would plan it anew; plan with other options to compare", events))
	} else if !q.NoLevers {
		levers = p.levers()
	}
	found := make([]*Lever, len(levers))
	// What takes longest starts first: the levers, which plan the job again.
	var long, short []func() error
	for i := range levers {
		pull := func() (err error) {
			found[i], err = p.pull(ctx, &levers[i])
			return err
		}
		if levers[i].conf == "" {
			long = append(long, pull)
		} else {
			short = append(short, pull)
		}
	}
	tasks := append(long, func() error { return p.FindLimit(ctx, &a.Outcome) }, func() error { return p.answerRange(ctx, a) })
	tasks = append(tasks, short...)
	workers := parallel.AllCores
	if len(p.run.ledger.Events) > oneByOne {
		workers = 1
	}
	if err := parallel.Each(ctx, workers, len(tasks), func(i int) error { return tasks[i]() }); err != nil {
		return nil, err
	}
	a.Judge()
	a.Levers = named(found)
	if a.Fits != nil && !*a.Fits {
		more, err := p.together(ctx, levers, found)
		if err != nil {
			return nil, err
		}
		if more != nil {
			a.Levers = append(a.Levers, *more)
		}
	}
	return a, nil
}

// answer makes the part of an answer that needs no further run.
func (p *planned) answer(assumed []string) *Answer {
	capacity := &p.Capacity
	a := &Answer{
		Outcome: *p.Outcome(),
		Model:   p.question.Model.Class, Parameters: p.run.parameters, Preset: presets[0].name,
		Measured: measured(p.job), RestsOn: append(restsOnFamily(p.job), restsOn(p.job)...), Beside: beside(p.run.beside),
		LeavesOut: append([]string{}, p.question.Model.LeavesOut...),
		Assumed:   []string{}, NotModelled: append([]string{}, p.run.notModelled...),
	}
	// The answer names a tensor of the loss as a phase of its own.
	phase := p.binding()
	a.BindingPhase, a.BindingStep = phase.Name, phase.Step
	a.Assumed = append(a.Assumed, capacity.Assumed()...)
	if c := capacity.Card; c != nil && c.Vendor != "" {
		a.Measured = false
		a.NotModelled = append(a.NotModelled, fmt.Sprintf("%s's kernels: the run is planned with those of an NVIDIA card; no %[1]s card was measured", c.Maker()))
	}
	for _, x := range p.question.Model.Assumed {
		a.Assumed = append(a.Assumed, fmt.Sprintf("%s = %s: %s", x.Field, x.Value, x.Why))
	}
	for _, x := range p.question.Model.Ignored {
		a.NotModelled = append(a.NotModelled, fmt.Sprintf("%s = %s: %s", x.Field, x.Value, x.Why))
	}
	a.Assumed = append(append(append(a.Assumed, p.question.Assumed...), assumed...), p.run.assumed...)
	a.NotModelled = append(a.NotModelled, p.question.NotModelled...)
	files, unknown := p.question.Weights.notes(p.run.parameters, p.job.DType)
	a.Assumed, a.NotModelled = append(a.Assumed, files...), append(a.NotModelled, unknown...)
	return a
}

// binding returns the phase of the peak. If a tensor of the loss reaches the peak,
// forward or backward, that phase is the loss.
func (p *planned) binding() ledger.Phase {
	l := p.Ledger
	phase := l.PhaseAt(p.at)
	if e := l.Events[p.at]; e >= 0 && l.Tensors[e].Kind == ledger.Loss && (phase.Name == ledger.Forward || phase.Name == ledger.Backward) {
		phase.Name = ledger.LossPhase
	}
	return phase
}

// measured reports whether runs of this kind were compared with the plan.
func measured(j *model.Job) bool { return j.Model.Measured() && measuredRun(j) }

// measuredRun is measured whatever the model: DDP and FSDP were, with a model
// that was built whole. The other ways to spread a model over ranks were not.
func measuredRun(j *model.Job) bool {
	if unmeasuredGeneration(j) || len(restsOn(j)) > 0 {
		return false
	}
	s := j.Shard
	return !s.BuildSharded && s.Zero == 0 && s.Tensor <= 1 && s.Sequence <= 1 && s.Pipeline <= 1 && s.Context <= 1 && s.Expert <= 1
}

// restsOnFamily is what the plan of a family or head rests on that was never
// measured.
func restsOnFamily(j *model.Job) []string {
	switch {
	case !j.Model.Measured():
		return []string{j.Model.Class + ": the source of transformers 5.17"}
	case unmeasuredGeneration(j):
		return []string{"generation with " + j.Model.Class + ": the source of transformers 5.17"}
	}
	return []string{}
}

// unmeasuredGeneration reports whether a job generates in a way that no recording
// has: an encoder-decoder in a loop of forward calls, or a family that was only
// trained.
func unmeasuredGeneration(j *model.Job) bool {
	return j.Mode == model.Generate && (j.Model.T5 != nil && !j.GenerateCall || !j.Model.MeasuredGeneration())
}
