package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/checkpoint"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/internal/plan/model"
	"github.com/ashlar-mem/ashlar/internal/plan/problem"
	"github.com/ashlar-mem/ashlar/internal/replay"
	"github.com/ashlar-mem/ashlar/internal/timeline"
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
	// Fits is whether no request fails; nil without a card and a limit.
	Fits *bool `json:"fits"`

	// The peaks are those of a run without a limit. Under a limit the allocator
	// releases cached memory before a request fails: see Limited.
	PeakAllocated uint64 `json:"peak_allocated_bytes"`
	PeakReserved  uint64 `json:"peak_reserved_bytes"`
	PeakDevice    uint64 `json:"peak_device_bytes"`
	PeakRequested uint64 `json:"peak_requested_bytes"`
	// SmallestLimit is the lowest cap on reserved memory under which the run
	// passes.
	SmallestLimit uint64 `json:"smallest_limit_bytes"`
	// Available is the most that the allocator may reserve; nil if nothing bounds
	// it. Headroom is Available less SmallestLimit.
	Available *uint64 `json:"available_bytes"`
	Headroom  *int64  `json:"headroom_bytes"`

	// Limited is the run within Capacity; nil without one or if it does not fit.
	Limited *Limited `json:"limited"`
	// Tight: it fits, but Headroom is less than Range has above PeakReserved.
	Tight bool `json:"tight"`

	Range Range `json:"range"`

	BindingPhase string      `json:"binding_phase"`
	BindingStep  int         `json:"binding_step"`
	Components   []Component `json:"components"`
	// Fragmentation is 1 - peak allocated / peak reserved.
	Fragmentation float64 `json:"fragmentation"`

	Context          uint64 `json:"context_bytes"`
	ContextEstimated bool   `json:"context_estimated"`
	// TotalEstimated: the card's total was neither measured nor found in public
	// output.
	TotalEstimated bool   `json:"total_estimated"`
	Collectives    uint64 `json:"collectives_bytes"`

	Failure  *Failure  `json:"first_failure"` // nil if it fits
	Timeline *Timeline `json:"timeline"`
	Levers   []Lever   `json:"levers"`

	Model      string `json:"model"`
	Parameters int64  `json:"parameters"`
	Preset     string `json:"preset"`
	Settings   string `json:"settings"`
	// Beside is memory that the allocator does not see: managed, or on the host.
	Beside []Beside `json:"beside"`
	// Measured: runs of this kind were measured against the plan. RestsOn names
	// the sources of what was not.
	Measured    bool     `json:"measured"`
	RestsOn     []string `json:"rests_on"`
	Assumed     []string `json:"assumed"`
	NotModelled []string `json:"not_modelled"`
}

// Failure is the request at which a run that does not fit ends.
type Failure struct {
	Phase     string `json:"phase"`
	Step      int    `json:"step"`
	Op        string `json:"op"`
	Module    string `json:"module"`
	Bytes     uint64 `json:"bytes"`
	Reserved  uint64 `json:"reserved_bytes"`
	Allocated uint64 `json:"allocated_bytes"`
}

// prepare checks what all answers need. A memory fraction in the settings becomes
// a limit, as a part of the card's total.
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
	if f := q.Settings.PerProcessMemoryFraction; f < 1 {
		if q.Capacity.Card == nil {
			return problem.New("{settings} per_process_memory_fraction is a part of a card: give {gpu}")
		}
		part := max(uint64(f*float64(q.Capacity.Card.TotalBytes)), 1)
		if q.Capacity.Limit == 0 || part < q.Capacity.Limit {
			q.Capacity.Limit = part
		}
		q.Settings.PerProcessMemoryFraction = 1
	}
	return nil
}

// planned is a job with its ledger and what the engine makes of it.
type planned struct {
	question *Question
	job      *model.Job
	run      *executed
	program  *replay.Program
	*figures
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
func (q *Question) planRun(ctx context.Context, j *model.Job, run *executed, points int) (p *planned, err error) {
	p = &planned{question: q, job: j, run: run}
	if p.program, err = Program(run.ledger, q.Settings); err != nil {
		return nil, err
	}
	p.figures, err = measure(ctx, run.ledger, p.program, q.Settings, points)
	if q.Progress != nil {
		q.Progress()
	}
	return p, err
}

// maxLeverEvents is the most events of a run that is planned again for each lever:
// a dozen levers take a dozen times its time and memory.
const maxLeverEvents = 4_000_000

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
	tasks := append(long, func() error { return p.answerLimit(ctx, a) }, func() error { return p.answerRange(ctx, a) })
	tasks = append(tasks, short...)
	if err := parallel.Each(ctx, parallel.AllCores, len(tasks), func(i int) error { return tasks[i]() }); err != nil {
		return nil, err
	}
	if a.Headroom != nil && *a.Fits {
		a.Tight = *a.Headroom < int64(a.Range.ReservedHigh-a.PeakReserved)
	}
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
	l, capacity := p.run.ledger, &p.question.Capacity
	phase := p.binding()
	a := &Answer{
		PeakAllocated: p.allocated, PeakReserved: p.reserved, PeakRequested: p.requested,
		PeakDevice:   p.reserved + capacity.outside(p.job),
		BindingPhase: phase.Name, BindingStep: phase.Step,
		Components:  components(l, p.at, p.sizes),
		Collectives: capacity.collectives(p.job),
		Model:       p.question.Model.Class, Parameters: p.run.parameters, Preset: presets[0].name, Settings: p.question.Conf,
		Measured: measured(p.job), RestsOn: restsOn(p.job), Beside: beside(p.run.beside), Levers: []Lever{},
		Assumed: []string{}, NotModelled: append([]string{}, p.run.notModelled...),
	}
	a.Context, a.ContextEstimated = capacity.context()
	a.Assumed = append(a.Assumed, capacity.Assumed()...)
	if c := capacity.Card; c != nil && c.Vendor == "amd" {
		a.Measured = false
		a.NotModelled = append(a.NotModelled, "AMD's kernels: the run is planned with those of an NVIDIA card; no AMD card was measured")
	}
	a.TotalEstimated = capacity.Card != nil && capacity.Card.Total == cards.Estimate
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
	if f := timeline.PeakFragmentation(p.reserved, p.allocated); f != nil {
		a.Fragmentation = *f
	}
	if len(p.curve) > 0 {
		a.Timeline = newTimeline(l, p.curve, p.sizes)
	}
	return a
}

// binding returns the phase of the peak. If a tensor of the loss reaches the peak,
// forward or backward, that phase is the loss.
func (p *planned) binding() ledger.Phase {
	l := p.run.ledger
	phase := l.PhaseAt(p.at)
	if e := l.Events[p.at]; e >= 0 && l.Tensors[e].Kind == ledger.Loss && (phase.Name == ledger.Forward || phase.Name == ledger.Backward) {
		phase.Name = ledger.LossPhase
	}
	return phase
}

// measured reports whether runs of this kind were compared with the plan: DDP and
// FSDP were, with a model that was built whole. The other ways to spread a model
// over ranks were not.
func measured(j *model.Job) bool {
	if unmeasuredGeneration(j) || len(restsOn(j)) > 0 {
		return false
	}
	s := j.Shard
	return !s.BuildSharded && s.Zero == 0 && s.Tensor <= 1 && s.Sequence <= 1 && s.Pipeline <= 1 && s.Context <= 1 && s.Expert <= 1
}

// unmeasuredGeneration reports whether a job generates in a way that no recording
// has: an encoder-decoder in a loop of forward calls.
func unmeasuredGeneration(j *model.Job) bool {
	return j.Mode == model.Generate && j.Model.T5 != nil && !j.GenerateCall
}

// answerLimit finds the smallest limit and whether the job fits.
func (p *planned) answerLimit(ctx context.Context, a *Answer) (err error) {
	high := uint64(0)
	if plain(p.question.Settings) {
		high = p.reserved
	}
	if a.SmallestLimit, err = p.program.SmallestLimit(ctx, p.question.Settings, p.requested, high); err != nil {
		return err
	}
	n := p.question.Capacity.available(p.job)
	if n == 0 {
		return nil
	}
	headroom := int64(n) - int64(a.SmallestLimit)
	a.Available, a.Headroom = &n, &headroom
	limited, failed, err := p.fits(ctx)
	if err != nil {
		return err
	}
	ok := limited != nil
	a.Fits, a.Limited = &ok, limited
	if failed != nil {
		a.Failure = describe(p.run.ledger, failed)
	}
	return nil
}

// describe names the tensor of a request that failed.
func describe(l *ledger.Ledger, f *replay.Failure) *Failure {
	out := &Failure{Bytes: f.Requested, Reserved: f.Reserved, Allocated: f.Allocated}
	if f.Event < 0 || f.Event >= len(l.Events) {
		return out
	}
	phase := l.PhaseAt(f.Event)
	out.Phase, out.Step = phase.Name, phase.Step
	if e := l.Events[f.Event]; e >= 0 {
		out.Op, out.Module = l.Text(l.Tensors[e].Op), l.Text(l.Tensors[e].Module)
	}
	return out
}
