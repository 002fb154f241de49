package gpu

import (
	"errors"
	"math"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/settings"
)

// The settings under which the engine is timed.
const (
	SettingsPlain      = "expandable_segments:False"
	SettingsExpandable = "expandable_segments:True"
)

// engineSteps time the engine over this device, with the cases of
// docs/measured/engine.md.
func (r *runner) engineSteps() []step {
	var steps []step
	for _, conf := range []string{SettingsPlain, SettingsExpandable} {
		for _, c := range []struct {
			kind string
			need uint64
			run  func(*alloc.Allocator) (func(n int) error, error)
		}{
			{CaseHot, 2 * mib, hotPairs},
			{CaseWindow, 2 * windowBytes, windowPairs},
			{CaseRecordStream, 2 * mib, func(a *alloc.Allocator) (func(n int) error, error) { return recordPairs(a, r.stream) }},
		} {
			steps = append(steps, step{
				of: Row{Group: GroupEngine, Case: c.kind, Settings: &conf}, need: c.need,
				run: func() error {
					return r.withEngine(conf, func(a *alloc.Allocator) error { return r.enginePairs(a, conf, c.kind, c.run) })
				},
			})
		}
	}
	for _, n := range []int{1, 2, 4, 8} {
		steps = append(steps, step{
			of: Row{Group: GroupContention, Case: CaseHot, Goroutines: &n}, need: 2 * mib,
			run: func() error {
				return r.withEngine(SettingsPlain, func(a *alloc.Allocator) error { return r.contend(a, n) })
			},
		})
	}
	return steps
}

// withEngine runs f with an allocator of its own, which may take half of what
// is free, and gives its memory back. f leaves no block allocated.
func (r *runner) withEngine(conf string, f func(*alloc.Allocator) error) error {
	s, err := settings.Parse(conf)
	if err != nil {
		return err
	}
	if conf == SettingsExpandable && r.dev.Granularity() == 0 {
		return errors.New("the device cannot map memory into ranges")
	}
	limit, err := r.half()
	if err != nil {
		return err
	}
	a := alloc.New(r.dev, alloc.WithSettings(s), alloc.WithDevice(r.bench.Device.Index))
	a.SetLimit(limit)
	err = f(a)
	return errors.Join(err, a.EmptyCache())
}

var engineWhat = map[string]string{
	CaseHot:          "malloc and free of 4 KiB from the cache",
	CaseWindow:       "a random one of 512 live blocks freed, another allocated, sizes 2^uniform(9,25)",
	CaseRecordStream: "malloc of 4 KiB, record_stream on another stream and free: an event is recorded and asked for",
}

// enginePairs times pairs; prepare returns what does n of them, and with a
// negative n gives back what it holds.
func (r *runner) enginePairs(a *alloc.Allocator, conf, kind string, prepare func(*alloc.Allocator) (func(n int) error, error)) error {
	do, err := prepare(a)
	if err != nil {
		return err
	}
	err = r.addMany(Row{Group: GroupEngine, Case: kind, Part: PartAll, What: engineWhat[kind], Settings: &conf}, do)
	return errors.Join(err, do(-1))
}

const hotSize = 4 * kib

func hotPairs(a *alloc.Allocator) (func(n int) error, error) {
	return func(n int) error {
		for range n {
			addr, err := a.Malloc(hotSize, 0)
			if err != nil {
				return err
			}
			if err := a.Free(addr); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func recordPairs(a *alloc.Allocator, other uint64) (func(n int) error, error) {
	return func(n int) error {
		for range n {
			addr, err := a.Malloc(hotSize, 0)
			if err != nil {
				return err
			}
			if err := errors.Join(a.RecordStream(addr, other), a.Free(addr)); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// The window is that of the engine's benchmarks: as many live blocks, the same
// sizes in the same order.
const (
	windowLive  = 512
	windowSizes = 1 << 16
	windowWarm  = 200_000
	// The mean of 2^uniform(9,25) is (2^25-2^9)/(16 ln 2).
	windowBytes = windowLive * 3 * mib
)

// random is xorshift64*.
type random uint64

func (x *random) next() uint64 {
	*x ^= *x >> 12
	*x ^= *x << 25
	*x ^= *x >> 27
	return uint64(*x) * 0x2545F4914F6CDD1D
}

func windowPairs(a *alloc.Allocator) (func(n int) error, error) {
	draw := random(0x9E3779B97F4A7C15)
	sizes := make([]uint64, windowSizes)
	for i := range sizes {
		u := float64(draw.next()>>11) / (1 << 53)
		sizes[i] = uint64(math.Pow(2, 9+16*u))
	}
	live := make([]uint64, 0, windowLive)
	empty := func(err error) error {
		for _, addr := range live {
			err = errors.Join(err, a.Free(addr))
		}
		live = nil
		return err
	}
	for i := range windowLive {
		addr, err := a.Malloc(sizes[i], 0)
		if err != nil {
			return nil, empty(err)
		}
		live = append(live, addr)
	}
	replace := func(n int) error {
		for range n {
			x := draw.next()
			slot := x >> 16 % windowLive
			if err := a.Free(live[slot]); err != nil {
				return err
			}
			addr, err := a.Malloc(sizes[x%windowSizes], 0)
			if err != nil {
				live = append(live[:slot], live[slot+1:]...)
				return err
			}
			live[slot] = addr
		}
		return nil
	}
	if err := replace(windowWarm); err != nil {
		return nil, empty(err)
	}
	return func(n int) error {
		if n < 0 {
			return empty(nil)
		}
		return replace(n)
	}, nil
}

// contend times pairs from several goroutines, per pair over all of them.
func (r *runner) contend(a *alloc.Allocator, goroutines int) error {
	pairs, _ := hotPairs(a)
	conf := SettingsPlain
	row := Row{
		Group: GroupContention, Case: CaseHot, Part: PartAll, Goroutines: &goroutines, Settings: &conf,
		What: "malloc and free of 4 KiB from the cache, per pair over all goroutines",
	}
	return r.addMany(row, func(n int) error {
		return atOnce(goroutines, n, func(_, share int) error { return pairs(share) })
	})
}
