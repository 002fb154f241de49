package dry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ashlar-mem/ashlar/internal/parallel"
	"github.com/ashlar-mem/ashlar/internal/plan"
	"github.com/ashlar-mem/ashlar/internal/plan/cards"
	"github.com/ashlar-mem/ashlar/internal/plan/eager"
	"github.com/ashlar-mem/ashlar/internal/plan/ledger"
	"github.com/ashlar-mem/ashlar/settings"
	"github.com/ashlar-mem/ashlar/trace"
)

// Question is what is asked about a dry run.
type Question struct {
	Recording *Recording
	Capacity  plan.Capacity
	Settings  settings.Settings // of the allocator
	Conf      string            // the same as it was given
	Points    int               // the length of the timeline; 0 makes none
	NoLevers  bool              // leaves out what could be changed
}

// Answer is what the ledger and the engine say about a dry run.
type Answer struct {
	// The peaks are those of the whole run, as torch.cuda.max_memory_allocated
	// and max_memory_reserved would have them at its end.
	plan.Outcome

	Script []string `json:"script"` // its name and its arguments
	Torch  string   `json:"torch"`
	Card   string   `json:"card"` // the one that the script was told it has
	// Steps is how many steps of an optimizer were run, Events how many births,
	// deaths and calls were recorded.
	Steps  int `json:"steps"`
	Events int `json:"events"`
	// Compiled is how many graphs of torch.compile ran as Inductor compiled them;
	// notes name those that ran eagerly.
	Compiled int `json:"compiled_graphs"`
	// Ended is why the dry run ended: steps, passes, script, interrupted, an error, or
	// where the file was cut.
	Ended string `json:"ended"`
	// Lines are the lines of the script that hold most at the peak.
	Lines []Line `json:"lines"`
	// Notes are the questions that were answered without bytes.
	Notes []Note `json:"notes"`
	// Unknown are the ops whose workspace is not known.
	Unknown     []Op     `json:"unknown_ops"`
	Assumed     []string `json:"assumed"`
	NotModelled []string `json:"not_modelled"`
}

// Line is a line of the script, and what was allocated there and lives at the
// peak.
type Line struct {
	Where string `json:"where"` // file:line function
	Bytes uint64 `json:"bytes"`
	Count int    `json:"count"` // of allocations
	// Mostly is what most of the bytes are for.
	Mostly string `json:"mostly"`
}

// Document is what ashlar dry --json prints.
type Document struct {
	File string `json:"file"`
	*Answer
	// Exit is the status that the script ended with; nil if it was not run here, or
	// a signal ended it.
	Exit    *int          `json:"exit_status"`
	Max     *Largest      `json:"max,omitempty"`
	Against *plan.Against `json:"against,omitempty"`
	Trace   string        `json:"trace,omitempty"` // the file that the run was written to
}

// Kernels returns the device whose kernels a script was run with.
func (h *Header) Kernels() eager.Device {
	d := eager.H200
	if h.Device.Processors > 0 {
		d.Multiprocessors = h.Device.Processors
	}
	if h.Device.Threads > 0 {
		d.ThreadsPerProc = h.Device.Threads
	}
	if c := h.Device.Capability; len(c) == 2 {
		d.Capability = 10*c[0] + c[1]
		d.BlasWorkspace = int64(cards.Card{Major: c[0], Minor: c[1]}.WorkspaceBytes())
	}
	return d
}

// Played is a dry run that went through the engine.
type Played struct {
	*Run
	plan.Played
}

// Play builds the ledger of a dry run and runs it without a limit.
func (q *Question) Play(ctx context.Context) (*Played, error) {
	if q.Settings == (settings.Settings{}) {
		q.Settings = settings.Default()
	}
	if err := q.Capacity.Fraction(&q.Settings); err != nil {
		return nil, err
	}
	p := &Played{Run: Build(q.Recording, q.Recording.Kernels())}
	if len(p.Run.Ledger.Tensors) == 0 {
		if why, ok := strings.CutPrefix(q.Recording.Ended, "error: "); ok {
			return nil, fmt.Errorf("the script failed before it allocated anything on a GPU: %s", why)
		}
		return nil, errors.New("nothing was allocated on a GPU: does the script use one, and did it get that far?")
	}
	p.Played = plan.Played{Ledger: p.Run.Ledger, Settings: q.Settings, Conf: q.Conf, Capacity: q.Capacity}
	if n := q.Recording.World.Size; n > 1 {
		p.Group.Ranks = n
	}
	return p, p.Play(ctx, q.Points)
}

// Ask answers a question.
func Ask(ctx context.Context, q Question) (*Played, *Answer, error) {
	p, err := q.Play(ctx)
	if err != nil {
		return nil, nil, err
	}
	a := p.answer(&q)
	var levers []func() (*plan.Lever, error)
	if !q.NoLevers {
		levers = p.levers(ctx)
	}
	found := make([]*plan.Lever, len(levers))
	tasks := []func() error{
		func() error { return p.FindLimit(ctx, &a.Outcome) },
		func() error { return p.FindRange(ctx, &a.Outcome, margin(&a.Outcome)) },
	}
	for i, try := range levers {
		tasks = append(tasks, func() (err error) {
			found[i], err = try()
			return err
		})
	}
	if err := parallel.Each(ctx, parallel.AllCores, len(tasks), func(i int) error { return tasks[i]() }); err != nil {
		return nil, nil, err
	}
	a.Judge()
	a.Levers = best(found)
	return p, a, nil
}

// answer makes the part of an answer that needs no further run.
func (p *Played) answer(q *Question) *Answer {
	r := q.Recording
	a := &Answer{
		Outcome: *p.Outcome(), Script: r.Argv, Torch: r.Torch, Card: r.Header.Device.Name,
		Steps: p.Run.Steps, Events: r.Events, Compiled: r.Compiled, Ended: r.Ended,
		Lines: p.lines(), Notes: r.Notes, Unknown: p.Run.Unknown,
		Assumed: append([]string{}, q.Capacity.Assumed()...), NotModelled: []string{},
	}
	if a.Script == nil {
		a.Script = []string{}
	}
	if a.Notes == nil {
		a.Notes = []Note{}
	}
	if a.Unknown == nil {
		a.Unknown = []Op{}
	}
	if c, had := q.Capacity.Card, r.Header.Device.Capability; c != nil && len(had) == 2 && (c.Major != had[0] || c.Minor != had[1]) {
		a.Assumed = append(a.Assumed, fmt.Sprintf("the kernels are those of %s (compute capability %d.%d), which the script was told it has; with %s (%d.%d) PyTorch may choose others: run the script with --gpu %s",
			r.Header.Device.Name, had[0], had[1], c.Title, c.Major, c.Minor, c.Name))
	}
	if r.Cut == "" && r.Ended == "" {
		r.Cut = "the ledger has no end"
	}
	if r.Cut != "" {
		a.Ended = cmp.Or(a.Ended, "cut: "+r.Cut)
		a.NotModelled = append(a.NotModelled, r.Cut+": what comes after is not in the answer")
	}
	if n := r.GPUs(); n > 1 {
		a.NotModelled = append(a.NotModelled, fmt.Sprintf("the other %d GPUs that the script has memory on: the answer is about cuda:%d", n-1, p.Run.GPU))
	}
	if len(r.Saves) > 0 {
		a.NotModelled = append(a.NotModelled, fmt.Sprintf("files that the script saves: %q was left out", r.Saves[0]))
	}
	return a
}

// maxLines is how many lines of the script are listed.
const maxLines = 20

// lines lists the script's lines that hold most at the peak.
func (p *Played) lines() []Line {
	type sum struct {
		Line
		by [16]uint64 // by purpose
	}
	sums := map[ledger.Name]*sum{}
	purposes := p.Run.Ledger.Purposes()
	p.LiveAtPeak(func(t int32, bytes uint64) {
		where := p.Run.Ledger.Tensors[t].Module
		s := sums[where]
		if s == nil {
			s = &sum{Line: Line{Where: p.Run.Ledger.Text(where)}}
			sums[where] = s
		}
		s.Bytes += bytes
		s.Count++
		s.by[purposes[t]] += bytes
	})
	out := []Line{}
	for where, s := range sums {
		if where == 0 {
			continue
		}
		most := 0
		for k, n := range s.by {
			if n > s.by[most] {
				most = k
			}
		}
		s.Mostly = ledger.Kind(most).String()
		out = append(out, s.Line)
	}
	slices.SortFunc(out, func(a, b Line) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Where, b.Where)) })
	return out[:min(len(out), maxLines)]
}

// margin is for what kernels allocate that no recording has shown.
func margin(a *plan.Outcome) plan.Reason {
	const allocated, reserved = 0.01, 0.02
	low, high := uint64(allocated*float64(a.PeakAllocated)), uint64(reserved*float64(a.PeakReserved))
	return plan.Reason{Name: "error margin: workspaces of kernels in shapes that were not measured", Low: low, High: low, ReservedLow: high, ReservedHigh: high}
}

// Trace is what PyTorch's memory history of the run would be, with the script's
// stacks. With a capacity the run ends at the request that fails.
func (p *Played) Trace(ctx context.Context) (*trace.Trace, error) {
	return p.Played.Trace(ctx, plan.Stacks{
		Of:     func(t int32) int32 { return p.Run.stacks[t] },
		Frames: p.Recording.framesOf,
	})
}
