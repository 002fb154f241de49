//go:build linux

package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
)

// The checks of TestGPU in which the engine works, and what calls cost.

// capture lets the engine and another thread work while a graph is captured in
// the mode in which the driver refuses most.
func (g gpu) capture(t *testing.T) {
	for _, conf := range []string{"", "expandable_segments:True"} {
		release := must(g.Bind())
		a := alloc.New(g.Device, alloc.WithSettings(parse(t, conf)))
		outcome := must(a.Malloc(kernels.OutcomeSize, g.s))
		cached := must(a.Malloc(100*mib, g.other))
		// The driver may load a kernel only when it is first launched, and a
		// capture is no time for that.
		check(t, g.k.Write(cached, 1, 5, g.s))
		check(t, g.Clear(outcome))
		check(t, g.k.Check(cached, 1, 5, outcome, g.s))
		check(t, g.Synchronize(g.s))
		check(t, a.Free(cached))
		base := must(g.Reserve(20*mib, g.s))
		check(t, g.Map(base, 20*mib, 20*mib))

		c := must(a.BeginCapture(alloc.PoolID{}, func(stream uint64) bool { return stream == g.s }))
		check(t, g.BeginCapture(g.s, cuda.CaptureGlobal))
		addr := must(a.Malloc(50*mib, g.s))
		check(t, g.k.Write(addr, 50*mib/8, 5, g.s))
		check(t, g.Clear(outcome))
		check(t, g.k.Check(addr, 50*mib/8, 5, outcome, g.s))
		for name, err := range map[string]error{"Unmap": g.Unmap(base, 20*mib, 20*mib, g.s), "Synchronize": g.Synchronize(g.s)} {
			if !errors.Is(err, cuda.ErrCapturing) {
				t.Errorf("%s of a captured stream: %v", name, err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { // on another thread: this goroutine is bound to its own
			defer survive(t)
			plain := must(g.Malloc(30*mib, g.other))
			check(t, g.Fill(plain, 1, 30*mib, g.other))
			ev := must(g.RecordEvent(g.other, plain))
			for !must(g.EventDone(ev)) {
				time.Sleep(time.Millisecond)
			}
			_, _, err := g.MemInfo()
			check(t, err)
			check(t, g.WaitEvent(must(g.RecordEvent(g.other, plain))))
			check(t, g.Free(plain, 30*mib))
			host := must(g.AllocHost(mib))
			check(t, g.FreeHost(host))
			if !must(g.Capturing(g.s)) || must(g.Capturing(g.other)) {
				t.Error("the wrong streams are captured")
			}
		})
		wg.Wait()
		graph, err := g.EndCapture(g.s)
		if err != nil {
			t.Fatalf("%q: the capture was broken: %v", conf, err)
		}
		check(t, c.End())
		for range 10 {
			check(t, g.Fill(addr, 0, 50*mib, g.s))
			check(t, graph.Launch(g.s))
			if o := must(g.k.Outcome(outcome, g.s)); o.Wrong != 0 {
				t.Errorf("%q: the graph's memory holds other things: %+v", conf, o)
			}
		}
		check(t, g.Unmap(base, 20*mib, 20*mib, g.s))
		check(t, errors.Join(graph.Close(), g.Unreserve(base, 20*mib), a.Free(addr), a.Free(outcome), c.Release(), a.EmptyCache()))
		release()
		t.Logf("%q: captured and launched ten times", conf)
	}
}

func (g gpu) engine(t *testing.T)           { g.random(t, "") }
func (g gpu) engineExpandable(t *testing.T) { g.random(t, "expandable_segments:True") }

// random runs the engine under pressure. Every block is filled as a whole on
// its stream and checked before it is freed.
func (g gpu) random(t *testing.T, conf string) {
	a := alloc.New(g.Device, alloc.WithSettings(parse(t, conf)))
	outcome := must(g.Malloc(kernels.OutcomeSize, g.s))
	check(t, g.Clear(outcome))
	check(t, g.Synchronize(g.s))
	a.SetLimit(700 * mib)
	p := program{Rand: rand.New(rand.NewPCG(5, 5)), a: a, streams: []uint64{0, g.s, g.other}}
	p.filled = func(b block) error { return g.k.Write(b.addr, b.size/8, b.addr^b.size, b.stream) }
	checked := 0
	p.leaving = func(b block) error {
		checked++
		return g.k.Check(b.addr, b.size/8, b.addr^b.size, outcome, b.stream)
	}
	ooms := 0
	for i := range 3000 {
		var oom *alloc.OutOfMemoryError
		switch err := p.step(); {
		case err == nil:
		case errors.As(err, &oom) || strings.Contains(err.Error(), "out of memory"):
			ooms++
		default:
			t.Fatalf("step %d: %v", i, err)
		}
	}
	for _, b := range p.live {
		check(t, p.leaving(b))
	}
	p.finish(t)
	check(t, g.SynchronizeDevice())
	if o := must(g.k.Outcome(outcome, g.s)); o.Wrong != 0 {
		t.Errorf("blocks were overwritten: %+v", o)
	}
	s := a.Stats()
	if ooms == 0 || s.NumAllocRetries == 0 {
		t.Errorf("%d requests failed, %d retried: there was no pressure", ooms, s.NumAllocRetries)
	}
	check(t, a.CheckInvariants())
	check(t, g.Free(outcome, kernels.OutcomeSize))
	t.Logf("%d blocks checked, %d requests refused, %d retries, %d segments or mappings made", checked, ooms, s.NumAllocRetries, s.NumDeviceAlloc)
}

func (g gpu) threads(t *testing.T) {
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 20 {
				addr, err := g.Malloc(4*mib, g.s)
				if err == nil {
					mem := make([]byte, 4096)
					err = errors.Join(g.Fill(addr, byte(n), 4*mib, g.s), g.CopyToHost(mem, addr+2*mib, g.s), g.Synchronize(g.s), g.Free(addr, 4*mib))
					if err == nil && (mem[0] != byte(n) || mem[4095] != byte(n)) {
						err = fmt.Errorf("read %d, want %d", mem[0], n)
					}
				}
				if err != nil {
					t.Errorf("goroutine %d, round %d: %v", n, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("8 goroutines, 160 pairs")
}

// costs tells what the calls that the engine makes all the time cost.
func (g gpu) costs(t *testing.T) {
	event := func() {
		ev, err := g.RecordEvent(g.s, 0)
		check(t, err)
		for done := false; !done; {
			done, err = g.EventDone(ev)
			check(t, err)
		}
	}
	measure := func(where string) {
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"RecordEvent and EventDone", event},
			{"MemInfo", func() { free(t, g.Device) }},
			{"Malloc and Free of 2 MiB", func() { check(t, g.Free(must(g.Malloc(2*mib, 0)), 2*mib)) }},
		} {
			c.f()
			const n = 200
			began := time.Now()
			for range n {
				c.f()
			}
			took := time.Since(began) / n
			garbage := testing.AllocsPerRun(50, c.f)
			if garbage != 0 && !raced {
				t.Errorf("%s, %s: %v allocations", c.name, where, garbage)
			}
			t.Logf("%s, %s: %v", c.name, where, took)
		}
	}
	measure("context pushed")
	release := must(g.Bind())
	measure("context current")
	release()
}

func (g gpu) usage(t *testing.T) {
	u, err := g.Usage()
	if err != nil || u.Total == 0 || u.Used == 0 || u.Free > u.Total {
		t.Errorf("%+v, %v", u, err)
	}
	t.Logf("%+v", u)
	all, err := g.Processes()
	check(t, err)
	self := false
	for _, p := range all {
		self = self || p.Self && p.Used > 0
		t.Logf("%+v", p)
	}
	if !self {
		t.Error("NVML does not list this process (in a container it may see only the host's process numbers)")
	}
}
