package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Options say how Run works.
type Options struct {
	Quick    bool                               // fewer sizes and rounds
	Progress func(done, total int, what string) // called before each case; may be nil
}

// What a bench may take.
const (
	fullTime  = 50 * time.Second
	quickTime = 12 * time.Second

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
	group, kind string
	what        string // for the line that shows progress
	size        uint64 // 0 if it has none
	need        uint64 // memory of the device
	run         func() error
}

// runner times the cases of a bench.
type runner struct {
	timer
	dev    *cuda.Device
	stream uint64 // does not wait for stream 0
	set    *kernels.Set
	quick  bool
	bench  *Bench
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
	r := &runner{
		timer: timer{pace: paceOf(o.Quick), ctx: ctx, end: begin.Add(fullTime)},
		dev:   dev, quick: o.Quick,
		bench: &Bench{
			Device: card(dev.Info()), CUDAVersion: lib.Version().String(), DriverVersion: driverVersion(lib),
			CPUs: runtime.GOMAXPROCS(0), Quick: o.Quick, Rows: []Row{}, Skipped: []Skipped{}, Reading: []string{},
		},
	}
	if o.Quick {
		r.end = begin.Add(quickTime)
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
	r.bench.ElapsedS = time.Since(begin).Seconds()
	r.bench.Reading = r.bench.read()
	return r.bench, nil
}

// all does the cases in turn.
func (r *runner) all(progress func(done, total int, what string)) error {
	var steps []step
	for _, list := range [][]step{r.pairSteps(), r.asyncSteps(), r.handleSteps(), r.engineSteps(), r.growthSteps(), r.copySteps(), r.managedSteps()} {
		steps = append(steps, list...)
	}
	defer r.unload()
	for i, s := range steps {
		if progress != nil {
			progress(i, len(steps), s.what)
		}
		if why := r.refuses(&s); why != "" {
			r.skip(&s, why)
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
			r.skip(&s, err.Error())
		}
	}
	return nil
}

// refuses says why a case cannot be timed; empty if it can.
func (r *runner) refuses(s *step) string {
	if time.Now().After(r.end) {
		return fmt.Sprintf("the %.0f s that a bench may take were used up", r.limit().Seconds())
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

func (r *runner) limit() time.Duration {
	if r.quick {
		return quickTime
	}
	return fullTime
}

func (r *runner) skip(s *step, why string) {
	skipped := Skipped{Group: s.group, Case: s.kind, Why: why}
	if s.size > 0 {
		skipped.Size = &s.size
	}
	r.bench.Skipped = append(r.bench.Skipped, skipped)
}

// add appends a row with the figures of its rounds.
func (r *runner) add(row Row, samples []time.Duration, perRound int) {
	row.summarise(samples, perRound)
	r.bench.Rows = append(r.bench.Rows, row)
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
func (r *runner) kernels() (*kernels.Set, error) {
	if r.set == nil {
		set, err := kernels.Load(r.dev)
		if err != nil {
			return nil, err
		}
		r.set = set
	}
	return r.set, nil
}

func (r *runner) unload() {
	if r.set != nil {
		_ = r.set.Close() // the context ends anyway
		r.set = nil
	}
}

// half is how much the engine may take: what no case exceeds.
func (r *runner) half() (uint64, error) {
	free, _, err := r.dev.MemInfo()
	return free / freeShare, err
}

const never = math.MaxUint64 // of the pool's release threshold
