package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Options say how Run works.
type Options struct {
	Quick    bool                  // fewer sizes and rounds
	Progress func(done, total int) // called before each case; may be nil

	pace *pace // of tests
}

const (
	passes    = 2 // how often all cases are gone through
	freeShare = 2 // no case takes more than one part in so many of what is free
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// readingSize is the size at which the ways to a block are compared: that of a
// segment of the engine.
const readingSize = 20 * mib

// step is a case: some rows that are timed together.
type step struct {
	of   Row    // what they have in common
	need uint64 // memory of the device
	run  func() error
}

// runner times the cases of a bench.
type runner struct {
	timer
	dev    *cuda.Device
	stream uint64 // does not wait for stream 0
	set    *kernels.Set
	gather *kernels.Gather
	bench  *Bench
	times  [][]time.Duration // of the rounds of each row
}

// Run times calls on a device. An interrupt is no error: the bench says so and
// has the rows until then.
func Run(ctx context.Context, lib *cuda.Library, device int, o Options) (*Bench, error) {
	dev, err := lib.Device(device)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	// One thread for all calls, so that each of them finds its context.
	release, err := dev.Bind()
	if err != nil {
		return nil, err
	}
	defer release()
	begin := time.Now()
	p := paceOf(o.Quick)
	if o.pace != nil {
		p = *o.pace
	}
	r := &runner{
		timer: timer{pace: p, ctx: ctx, end: begin.Add(p.limit)},
		dev:   dev,
		bench: &Bench{
			Device: card(dev.Info()), CUDAVersion: lib.Version().String(), DriverVersion: driverVersion(lib),
			CPUs: runtime.GOMAXPROCS(0), Quick: o.Quick, Rows: []Row{}, Skipped: []Skipped{}, Reading: []string{},
		},
	}
	if r.bench.FreeBytes, _, err = dev.MemInfo(); err != nil {
		return nil, err
	}
	if r.stream, err = dev.NewStream(); err != nil {
		return nil, err
	}
	defer dev.CloseStream(r.stream)
	if err := r.all(o.Progress); err != nil {
		return nil, err
	}
	for i := range r.bench.Rows {
		r.bench.Rows[i].summarise(r.times[i])
	}
	r.bench.ElapsedS = time.Since(begin).Seconds()
	r.bench.Reading = r.bench.read()
	return r.bench, nil
}

// all does the cases in turn, all of them in each pass: what slows the machine
// down for a while is then in the spread, and not in one case alone.
func (r *runner) all(progress func(done, total int)) error {
	var steps []step
	for _, list := range [][]step{
		r.pairSteps(), r.asyncSteps(), r.handleSteps(), r.engineSteps(), r.growthSteps(), r.copySteps(), r.managedSteps(),
		r.threadSteps(), r.streamSteps(), r.faultSteps(), r.accessSteps(), r.tierSteps(),
	} {
		steps = append(steps, list...)
	}
	defer r.unload()
	timed := make([]bool, len(steps))
	for i := range passes * len(steps) {
		if progress != nil {
			progress(i, passes*len(steps))
		}
		s := &steps[i%len(steps)]
		again := i >= len(steps)
		if again && !timed[i%len(steps)] {
			continue
		}
		if why := r.refuses(s); why != "" {
			if !again {
				r.skip(s, why)
			}
			continue
		}
		err := s.run()
		if r.ctx.Err() != nil {
			r.bench.Interrupted = true
			return nil
		}
		switch {
		case errors.Is(err, cuda.ErrExiting), errors.Is(err, cuda.ErrClosed):
			return err
		case err != nil:
			r.skip(s, err.Error())
		default:
			timed[i%len(steps)] = true
		}
	}
	return nil
}

// refuses says why a case cannot be timed; empty if it can.
func (r *runner) refuses(s *step) string {
	if time.Now().After(r.end) {
		return fmt.Sprintf("the %g s that a bench may take were used up", r.limit.Seconds())
	}
	free, _, err := r.dev.MemInfo()
	if err != nil {
		return err.Error()
	}
	if s.need > free/freeShare {
		return fmt.Sprintf("it needs %s and may take half of the %s that are free", units.Size(s.need), units.Size(free))
	}
	return ""
}

func (r *runner) skip(s *step, why string) {
	r.bench.Skipped = append(r.bench.Skipped, Skipped{
		Group: s.of.Group, Case: s.of.Case, Settings: s.of.Settings, Size: s.of.Size, Handles: s.of.Handles, Goroutines: s.of.Goroutines,
		Streams: s.of.Streams, Why: why,
	})
}

// add appends a row with the times of its rounds, or the times to the row that
// is there from an earlier pass.
func (r *runner) add(row Row, rounds []time.Duration, perRound int) {
	i := r.row(&row)
	if i < 0 {
		i = len(r.times)
		row.PerRound = perRound
		r.bench.Rows = append(r.bench.Rows, row)
		r.times = append(r.times, nil)
	}
	r.times[i] = append(r.times[i], rounds...)
}

// row finds the row of the same case; -1 if there is none.
func (r *runner) row(of *Row) int {
	return slices.IndexFunc(r.bench.Rows, func(b Row) bool { return b.key() == of.key() })
}

// perRound is how many calls a round of the same case has, 0 if there is none.
func (r *runner) perRound(of *Row) int {
	if i := r.row(of); i >= 0 {
		return r.bench.Rows[i].PerRound
	}
	return 0
}

// addMany times calls that are too short to be timed alone.
func (r *runner) addMany(row Row, do func(n int) error) error {
	rounds, n, err := r.many(r.perRound(&row), do)
	if err != nil {
		return err
	}
	r.add(row, rounds, n)
	return nil
}

// addParts appends a row for each part and one for all of them together.
func (r *runner) addParts(row Row, samples [][]time.Duration, parts []part) {
	for i, p := range parts {
		row.Part, row.What = p.name, p.what
		r.add(row, samples[i], 1)
	}
	whole := make([]time.Duration, len(samples[0]))
	for _, list := range samples {
		for i, d := range list {
			whole[i] += d
		}
	}
	row.Part, row.What = PartAll, "all of it"
	r.add(row, whole, 1)
}

// part is a part of a case and what it is.
type part struct{ name, what string }

// lap is the time since the mark, which it moves to now.
func lap(mark *time.Time) time.Duration {
	now := time.Now()
	d := now.Sub(*mark)
	*mark = now
	return d
}

// kernels loads the kernels when they are first needed.
func (r *runner) kernels() (*kernels.Set, error) { return loaded(&r.set, r.dev, kernels.Load) }

func loaded[T any](to **T, dev *cuda.Device, load func(*cuda.Device) (*T, error)) (*T, error) {
	if *to == nil {
		k, err := load(dev)
		if err != nil {
			return nil, err
		}
		*to = k
	}
	return *to, nil
}

func (r *runner) unload() {
	if r.set != nil {
		_ = r.set.Close() // the context ends anyway
		r.set = nil
	}
	if r.gather != nil {
		_ = r.gather.Close()
		r.gather = nil
	}
}

// half is how much the engine may take: what no case exceeds.
func (r *runner) half() (uint64, error) {
	free, _, err := r.dev.MemInfo()
	return free / freeShare, err
}

const never = math.MaxUint64 // of the pool's release threshold
