//go:build linux

package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// renamed is a device whose addresses the engine sees as those that the
// simulated device would have given. The engine prefers lower addresses among
// equal blocks, so that two engines can be compared only if they see the same.
type renamed struct {
	*cuda.Device
	names *sim.Device
	real  map[uint64]piece // by the name of its beginning
}

type piece struct{ addr, size uint64 }

func newRenamed(d *cuda.Device) *renamed {
	return &renamed{d, sim.New(sim.Config{TotalMemory: d.TotalMemory(), Endless: true}), map[uint64]piece{}}
}

// addr is the real address of a named one.
func (r *renamed) addr(name uint64) uint64 {
	for base, p := range r.real {
		if name >= base && name < base+p.size {
			return p.addr + name - base
		}
	}
	panic(fmt.Sprintf("%#x is no address", name))
}

func (r *renamed) Malloc(size, stream uint64) (uint64, error) {
	addr, err := r.Device.Malloc(size, stream)
	if err != nil {
		return 0, err
	}
	name := must(r.names.Malloc(size, stream))
	r.real[name] = piece{addr, size}
	return name, nil
}

func (r *renamed) Free(name, size uint64) error {
	if err := r.Device.Free(r.addr(name), size); err != nil {
		return err
	}
	delete(r.real, name)
	return r.names.Free(name, size)
}

func (r *renamed) Reserve(size, stream uint64) (uint64, error) {
	addr, err := r.Device.Reserve(size, stream)
	if err != nil {
		return 0, err
	}
	name := must(r.names.Reserve(size, stream))
	r.real[name] = piece{addr, size}
	return name, nil
}

func (r *renamed) Unreserve(name, size uint64) error {
	if err := r.Device.Unreserve(r.addr(name), size); err != nil {
		return err
	}
	delete(r.real, name)
	return r.names.Unreserve(name, size)
}

func (r *renamed) Map(name, size, granule uint64) error {
	return r.Device.Map(r.addr(name), size, granule)
}

func (r *renamed) Unmap(name, size, granule, stream uint64) error {
	return r.Device.Unmap(r.addr(name), size, granule, stream)
}

// block is memory of a program.
type block struct {
	addr, size, stream uint64
	mark               byte // what it is filled with
}

// program does random operations on an allocator. Whatever they are worth, two
// programs of the same seed do the same.
type program struct {
	*rand.Rand
	a       *alloc.Allocator
	streams []uint64
	live    []block
	filled  func(b block) error // fills a new block
	leaving func(b block) error // checks a block that is about to be freed
}

func (p *program) size() uint64 {
	if p.IntN(3) == 0 {
		return 1 + p.Uint64N(60*mib)
	}
	return 1 + p.Uint64N(1<<(1+p.Uint64N(22)))
}

// step does one operation and returns what to compare.
func (p *program) step() error {
	switch n := p.IntN(100); {
	case n < 50:
		b := block{size: p.size(), stream: p.streams[p.IntN(len(p.streams))], mark: byte(p.Uint32())}
		var err error
		if b.addr, err = p.a.Malloc(b.size, b.stream); err != nil {
			var oom *alloc.OutOfMemoryError
			if errors.As(err, &oom) {
				return errors.New(oom.Error()) // with all its numbers
			}
			return err
		}
		p.live = append(p.live, b)
		if p.filled != nil {
			return p.filled(b)
		}
	case n < 85 && len(p.live) > 0:
		i := p.IntN(len(p.live))
		b := p.live[i]
		p.live = slices.Delete(p.live, i, i+1)
		if p.leaving != nil {
			if err := p.leaving(b); err != nil {
				return err
			}
		}
		return p.a.Free(b.addr)
	case n < 95 && len(p.live) > 0:
		return p.a.RecordStream(p.live[p.IntN(len(p.live))].addr, p.streams[p.IntN(len(p.streams))])
	case n < 97:
		return p.a.EmptyCache()
	}
	return nil
}

// finish gives everything back.
func (p *program) finish(t *testing.T) {
	t.Helper()
	for _, b := range p.live {
		check(t, p.a.Free(b.addr))
	}
	p.live = nil
	check(t, p.a.EmptyCache())
}

func parse(t testing.TB, conf string) settings.Settings {
	t.Helper()
	s, err := settings.Parse(conf)
	check(t, err)
	return s
}

var engineConfs = []string{
	"", "expandable_segments:True", "max_split_size_mb:40,garbage_collection_threshold:0.5",
	"expandable_segments:True,garbage_collection_threshold:0.6",
}

// TestEngine: the engine on the stand-in does what it does on the simulated
// device, to the last statistic and the text of every error, whether work is
// done at once or only when somebody waits for it. Every block is filled on its
// stream and checked before it is freed, all live ones now and then.
func TestEngine(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		for seed, conf := range engineConfs {
			t.Run(fmt.Sprintf("lazy=%t,%s", lazy, conf), func(t *testing.T) {
				const total = 700 * mib
				lib, d := newDevice(t, fmt.Sprintf("FAKECUDA_MEMORY=%d", uint64(total)), "ASHLAR_LIBNVML=/nowhere")
				lib.SetLazy(lazy)
				streams := []uint64{0, must(d.NewStream()), must(d.NewStream())}
				slices.Sort(streams)
				real := newRenamed(d)
				mode := sim.Immediate
				if lazy {
					mode = sim.Manual
				}
				ref := sim.New(sim.Config{TotalMemory: total, Events: mode})
				got := program{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), streams: streams}
				want := program{Rand: rand.New(rand.NewPCG(uint64(seed), 7)), streams: streams}
				got.a = alloc.New(real, alloc.WithSettings(parse(t, conf)))
				want.a = alloc.New(ref, alloc.WithSettings(parse(t, conf)))
				got.filled = func(b block) error { return mark(real, b) }
				if !lazy { // reading would wait for the stream
					got.leaving = func(b block) error { return verify(real, b) }
				}
				ooms := 0
				for i := range 1500 {
					ge, we := got.step(), want.step()
					if fmt.Sprint(ge) != fmt.Sprint(we) {
						t.Fatalf("step %d: %v\non the simulated device: %v", i, ge, we)
					}
					if ge != nil {
						ooms++
					}
					if diff := cmp.Diff(want.a.Stats(), got.a.Stats()); diff != "" {
						t.Fatalf("step %d: statistics differ (-sim +cuda)\n%s", i, diff)
					}
					if i%100 == 99 {
						for _, b := range got.live {
							check(t, verify(real, b))
						}
						if lazy { // reading has waited for streams
							ref.CompleteAll()
							lib.Run()
						}
					}
				}
				if ooms == 0 || got.a.Stats().NumAllocRetries == 0 {
					t.Errorf("%d requests failed, %d retried: the device is too large for the test", ooms, got.a.Stats().NumAllocRetries)
				}
				got.finish(t)
				check(t, got.a.CheckInvariants())
				check(t, errors.Join(d.CloseStream(streams[1]), d.CloseStream(streams[2])))
			})
		}
	}
}

// edge is how much of each end of a block is filled and checked.
const edge = 512

// mark fills the ends of a block on its stream.
func mark(r *renamed, b block) error {
	n := min(b.size, edge)
	return errors.Join(r.Fill(r.addr(b.addr), b.mark, n, b.stream), r.Fill(r.addr(b.addr)+b.size-n, b.mark, n, b.stream))
}

// verify checks that nobody else has written to the ends of a block.
func verify(r *renamed, b block) error {
	n := min(b.size, edge)
	mem := make([]byte, 2*n)
	err := errors.Join(r.CopyToHost(mem[:n], r.addr(b.addr), b.stream), r.CopyToHost(mem[n:], r.addr(b.addr)+b.size-n, b.stream))
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(mem, func(v byte) bool { return v != b.mark }); i >= 0 {
		return fmt.Errorf("byte %d of the block of %d at %#x holds %#x, not %#x", i, b.size, b.addr, mem[i], b.mark)
	}
	return nil
}

// TestEngineFailures lets each driver call of a run fail in turn, once with out
// of memory and once with another error. Afterwards everything can be given
// back.
func TestEngineFailures(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		lib, d := newDevice(t, "FAKECUDA_MEMORY=0x10000000", "ASHLAR_LIBNVML=/nowhere")
		streams := []uint64{0, must(d.NewStream())}
		run := func(n, fault int) int {
			lib.Heal()
			lib.SetLazy(true)
			if n > 0 {
				lib.Fail("", n, fault)
			}
			before := lib.Calls()
			p := program{Rand: rand.New(rand.NewPCG(3, 3)), streams: streams}
			p.a = alloc.New(d, alloc.WithSettings(parse(t, conf)))
			for range 120 {
				err := p.step()
				var e *cuda.Error
				if err != nil && fault != 2 && n == 0 && errors.As(err, &e) {
					t.Fatalf("the driver refuses a call of the engine: %v", err)
				}
				if i := p.a.CheckInvariants(); i != nil {
					t.Fatalf("%q, call %d fails with %d: %v", conf, n, fault, i)
				}
			}
			calls := lib.Calls() - before
			lib.Heal()
			p.finish(t)
			for _, what := range []string{"allocations", "reservations", "handles", "mappings"} {
				if left := lib.Count(what); left != 0 {
					t.Fatalf("%q, call %d fails with %d: %d %s left", conf, n, fault, left, what)
				}
			}
			return calls
		}
		calls := run(0, 0)
		if calls < 200 {
			t.Fatalf("%q: only %d driver calls", conf, calls)
		}
		stride := 1
		if raced {
			stride = 7
		}
		for n := 1; n <= calls; n += stride {
			run(n, 2)
			run(n, 999)
		}
		check(t, d.CloseStream(streams[1]))
	}
}

// TestEngineCapture: a graph is captured while the engine allocates from the
// driver, and its memory stays its own until the graph is released.
func TestEngineCapture(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		_, d := newDevice(t)
		release := must(d.Bind())
		s := must(d.NewStream())
		a := alloc.New(d, alloc.WithSettings(parse(t, conf)))
		in := must(a.Malloc(mib, s))
		c := must(a.BeginCapture(alloc.PoolID{}, func(stream uint64) bool { return stream == s }))
		check(t, d.BeginCapture(s, cuda.CaptureGlobal))
		tmp := must(a.Malloc(30*mib, s)) // makes driver calls
		check(t, d.CopyOnDevice(tmp, in, mib, s))
		out := must(a.Malloc(2*mib, s))
		check(t, d.CopyOnDevice(out, tmp, mib, s))
		check(t, a.Free(tmp))
		g := must(d.EndCapture(s))
		check(t, c.End())

		for value := byte(1); value < 4; value++ {
			other := must(a.Malloc(30*mib, s)) // must not lie on the graph's memory
			check(t, d.Fill(other, 0xee, 30*mib, s))
			check(t, d.Fill(in, value, mib, s))
			check(t, g.Launch(s))
			check(t, d.Synchronize(s))
			mem := make([]byte, 30*mib)
			check(t, d.CopyToHost(mem[:mib], out, s))
			if mem[0] != value || mem[mib-1] != value {
				t.Errorf("%q: the graph computed %d, want %d", conf, mem[0], value)
			}
			check(t, d.CopyToHost(mem, other, s))
			if i := slices.IndexFunc(mem, func(b byte) bool { return b != 0xee }); i >= 0 {
				t.Errorf("%q: the graph wrote to byte %d of another block", conf, i)
			}
			check(t, a.Free(other))
		}
		check(t, errors.Join(g.Close(), a.Free(in), a.Free(out), c.Release(), a.EmptyCache(), d.CloseStream(s)))
		release()
	}
}

var _ driver.Driver = (*renamed)(nil)
