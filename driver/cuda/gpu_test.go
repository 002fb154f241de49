//go:build linux

package cuda_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/cuda"
	"github.com/ashlar-mem/ashlar/driver/cuda/kernels"
)

// TestGPU does everything once on a real GPU:
//
//	go test -c ./driver/cuda && ./cuda.test -test.run TestGPU -test.v
//
// With -v every check prints a line with what it measured.
func TestGPU(t *testing.T) {
	lib, err := cuda.Open()
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		t.Skip(err)
	}
	check(t, err)
	t.Logf("%s supports CUDA %s and shows %d GPUs", lib.Path(), lib.Version(), must(lib.Devices()))
	t.Logf("%+v", must(lib.Info(0)))
	// Only before the context is made.
	cost, err := lib.ContextCost(0)
	if err != nil || cost < 10*mib || cost > 4*gib {
		t.Errorf("a context costs %d bytes: %v", cost, err)
	}
	t.Logf("a context costs %.0f MiB", float64(cost)/mib)

	d := must(lib.Device(0))
	k, err := kernels.Load(d)
	check(t, err)
	g := gpu{d, k, must(d.NewStream()), must(d.NewStream())}
	if _, err := lib.ContextCost(0); !errors.Is(err, cuda.ErrContextExists) {
		t.Errorf("the cost of a context that exists: %v", err)
	}
	for _, c := range []struct {
		name  string
		check func(gpu, *testing.T)
	}{
		{"plain", gpu.plain},
		{"kernels", gpu.kernelsWork},
		{"events", gpu.events},
		{"copies", gpu.copies},
		{"virtual", gpu.virtual},
		{"virtual-oom", gpu.virtualOOM},
		{"async", gpu.async},
		{"managed", gpu.managed},
		{"errors", gpu.errors},
		{"capture", gpu.capture},
		{"engine", gpu.engine},
		{"engine-expandable", gpu.engineExpandable},
		{"threads", gpu.threads},
		{"costs", gpu.costs},
		{"usage", gpu.usage},
	} {
		before := free(t, d)
		t.Run(c.name, func(t *testing.T) {
			defer survive(t) // the other checks are worth doing
			c.check(g, t)
		})
		check(t, d.SynchronizeDevice())
		// Others may use the GPU too, and the driver keeps a little for itself.
		if after := free(t, d); after+64*mib < before {
			t.Errorf("%s: %d bytes did not come back", c.name, before-after)
		}
	}
	check(t, errors.Join(k.Close(), d.CloseStream(g.s), d.CloseStream(g.other), d.Close()))
}

// survive makes a panic of must a failure of the test.
func survive(t *testing.T) {
	if r := recover(); r != nil {
		t.Errorf("%v\n%s", r, debug.Stack())
	}
}

// gpu is a GPU with what the checks need.
type gpu struct {
	*cuda.Device
	k        *kernels.Set
	s, other uint64
}

// second is about so many cycles.
const second = 1_800_000_000

func (g gpu) plain(t *testing.T) {
	before, total, err := g.MemInfo()
	check(t, err)
	addr := must(g.Malloc(256*mib, g.s))
	if got := free(t, g.Device); before-got < 256*mib || total != g.TotalMemory() {
		t.Errorf("256 MiB cost %d bytes of %d", before-got, total)
	}
	check(t, g.Free(addr, 256*mib))
	if err := g.Free(addr, 256*mib); code(err) != 1 {
		t.Errorf("freed twice: %v", err)
	}
	_, err = g.Malloc(2*total, g.s)
	if !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("twice the GPU: %v", err)
	}
	t.Logf("%.1f of %.1f GiB free; twice as much: %v", float64(before)/gib, float64(total)/gib, err)
}

func (g gpu) kernelsWork(t *testing.T) {
	const words = 10_000_003
	addr := must(g.Malloc(8*words, g.s))
	outcome := must(g.Malloc(kernels.OutcomeSize, g.s))
	check(t, g.k.Write(addr, words, 42, g.s))
	check(t, g.k.Clear(outcome, g.s))
	check(t, g.k.Check(addr, words, 42, outcome, g.s))
	if o := must(g.k.Outcome(outcome, g.s)); o != (kernels.Outcome{First: math.MaxUint64}) {
		t.Errorf("the pattern is not what was written: %+v", o)
	}
	mem := make([]byte, 8*words)
	check(t, g.CopyToHost(mem, addr, g.s))
	var sum uint64
	for i := range uint64(words) {
		w := binary.LittleEndian.Uint64(mem[8*i:])
		if w != kernels.Word(42, i) {
			t.Fatalf("word %d is %#x, the host expects %#x", i, w, kernels.Word(42, i))
		}
		sum += w
	}
	check(t, g.Fill(addr+8*7_654_321, 0, 24, g.s))
	check(t, g.k.Check(addr, words, 42, outcome, g.s))
	if o := must(g.k.Outcome(outcome, g.s)); o != (kernels.Outcome{Wrong: 3, First: 7_654_321}) {
		t.Errorf("three spoiled words: %+v", o)
	}
	check(t, g.k.Write(addr, words, 42, g.s))
	check(t, g.Fill(outcome, 0, 8, g.s))
	check(t, g.k.Sum(addr, words, outcome, g.s))
	if o := must(g.k.Outcome(outcome, g.s)); o.Wrong != sum {
		t.Errorf("the sum is %#x, the host's %#x", o.Wrong, sum)
	}
	check(t, errors.Join(g.Free(addr, 8*words), g.Free(outcome, kernels.OutcomeSize)))
	t.Logf("written, checked and added up %d words", words)
}

func (g gpu) events(t *testing.T) {
	start, end := must(g.NewTimingEvent()), must(g.NewTimingEvent())
	check(t, start.Record(g.s))
	check(t, g.k.Spin(second/5, g.s))
	check(t, end.Record(g.s))
	busy := must(g.RecordEvent(g.s, 0))
	waits := must(g.RecordEvent(g.other, 0))
	check(t, g.WaitEvent(waits)) // another stream does not wait for it
	if must(g.EventDone(busy)) {
		t.Error("the event is done while its stream is busy")
	}
	if _, err := end.Since(start); code(err) != 600 {
		t.Errorf("the time of work that goes on: %v", err)
	}
	check(t, g.StreamWait(g.other, busy))
	after := must(g.RecordEvent(g.other, 0))
	if must(g.EventDone(after)) {
		t.Error("the other stream did not wait")
	}
	check(t, g.WaitEvent(busy))
	check(t, g.Synchronize(g.other))
	if !must(g.EventDone(after)) {
		t.Error("the event is not done though its stream is")
	}
	if _, err := g.EventDone(busy); err == nil {
		t.Error("an old name was accepted")
	}
	took := must(end.Since(start))
	if took < 20*time.Millisecond {
		t.Errorf("the kernel took %v", took)
	}
	check(t, errors.Join(start.Close(), end.Close()))
	t.Logf("%d cycles took %v", second/5, took)
}

func (g gpu) copies(t *testing.T) {
	const size = 64 * mib
	addr := must(g.Malloc(2*size, g.s))
	host, back := must(g.AllocHost(size)), must(g.AllocHost(size))
	r := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < size; i += 8 {
		binary.LittleEndian.PutUint64(host[i:], r.Uint64())
	}
	check(t, g.k.Spin(second/2, g.s))
	check(t, g.CopyToDevice(addr, host, g.s))
	check(t, g.CopyOnDevice(addr+size, addr, size, g.s))
	check(t, g.CopyToHost(back, addr+size, g.s))
	copied := must(g.RecordEvent(g.s, 0))
	if must(g.EventDone(copied)) {
		t.Error("copies of page-locked memory made the caller wait")
	}
	check(t, errors.Join(g.WaitEvent(copied), g.Synchronize(g.s)))
	if !bytes.Equal(host, back) {
		t.Error("what came back differs")
	}
	plain := make([]byte, size) // memory of Go
	check(t, g.CopyToHost(plain, addr, g.s))
	check(t, g.Fill(addr, 0x5a, size, g.s))
	check(t, g.CopyToDevice(addr+size, plain, g.s))
	check(t, g.CopyToHost(back, addr+size, g.s))
	check(t, g.Synchronize(g.s))
	if !bytes.Equal(host, plain) || !bytes.Equal(host, back) {
		t.Error("what came through memory of Go differs")
	}
	check(t, errors.Join(g.Free(addr, 2*size), g.FreeHost(host), g.FreeHost(back)))
}

func (g gpu) virtual(t *testing.T) {
	const granule = 20 * mib
	before := free(t, g.Device)
	base := must(g.Reserve(gib/granule*granule, g.s))
	check(t, g.Map(base, 3*granule, granule))
	check(t, g.Map(base+3*granule, 2*granule, granule))
	if got := before - free(t, g.Device); got < 5*granule {
		t.Errorf("five granules cost %d bytes", got)
	}
	outcome := must(g.Malloc(kernels.OutcomeSize, g.s))
	check(t, g.Clear(outcome))
	check(t, g.k.Write(base, 5*granule/8, 1, g.s)) // across both calls of Map
	check(t, g.k.Check(base, 5*granule/8, 1, outcome, g.s))
	// Unmap a hole while the stream is busy on it, and fill it again.
	check(t, g.k.Spin(second/20, g.s))
	check(t, g.k.Write(base+granule, 2*granule/8, 2, g.s))
	check(t, g.Unmap(base+granule, 3*granule, granule, g.s))
	check(t, g.Map(base+granule, 3*granule, granule))
	check(t, g.k.Write(base+granule, 3*granule/8, 3, g.s))
	check(t, g.k.Check(base+granule, 3*granule/8, 3, outcome, g.s))
	check(t, g.k.Check(base, granule/8, 1, outcome, g.s))
	if o := must(g.k.Outcome(outcome, g.s)); o.Wrong != 0 {
		t.Errorf("mapped memory does not hold what was written: %+v", o)
	}
	if err := g.Map(base, granule, granule); code(err) == 0 {
		t.Errorf("mapped twice: %v", err)
	}
	if err := g.Map(base+5*granule, mib, mib); err == nil {
		t.Error("a granule of 1 MiB was accepted")
	}
	check(t, g.Unmap(base, 5*granule, granule, g.s))
	// The stand-in refuses this; driver 580 does not.
	t.Logf("unmapped twice: %v", g.Unmap(base, granule, granule, g.s))
	check(t, errors.Join(g.Unreserve(base, gib/granule*granule), g.Free(outcome, kernels.OutcomeSize)))
	t.Logf("granularity %d, RDMA %t", g.Granularity(), g.Info().RDMA)
}

// Clear prepares an outcome on the first stream.
func (g gpu) Clear(outcome uint64) error { return g.k.Clear(outcome, g.s) }

// virtualOOM maps more than there is: all of it must be undone.
func (g gpu) virtualOOM(t *testing.T) {
	const granule = 512 * mib
	before := free(t, g.Device)
	size := (g.TotalMemory()/granule + 1) * granule
	base := must(g.Reserve(size, g.s))
	began := time.Now()
	err := g.Map(base, size, granule)
	if !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("more than there is: %v", err)
	}
	took := time.Since(began)
	if after := free(t, g.Device); after+64*mib < before {
		t.Errorf("%d bytes stayed mapped", before-after)
	}
	check(t, g.Unreserve(base, size)) // fails if anything is mapped
	t.Logf("refused and undone in %v: %v", took, err)
}

func (g gpu) async(t *testing.T) {
	check(t, g.SetReleaseThreshold(gib))
	check(t, g.ResetPoolHighs())
	addr := must(g.MallocAsync(64*mib, g.s))
	check(t, g.Fill(addr, 1, 64*mib, g.s))
	check(t, g.Synchronize(g.s))
	in := must(g.PoolStats())
	check(t, g.FreeAsync(addr, g.s))
	check(t, g.Synchronize(g.s))
	out := must(g.PoolStats())
	if in.Used < 64*mib || in.UsedHigh < in.Used || out.Used != in.Used-64*mib || out.Reserved < 64*mib || out.ReleaseThreshold != gib {
		t.Errorf("with memory %+v\nwithout %+v", in, out)
	}
	check(t, g.TrimPool(0))
	trimmed := must(g.PoolStats())
	if trimmed.Reserved >= out.Reserved {
		t.Errorf("trimming left %+v", trimmed)
	}
	check(t, g.SetReleaseThreshold(0))
	t.Logf("used %d, reserved %d, after trimming %d", in.Used, in.Reserved, trimmed.Reserved)
}

func (g gpu) managed(t *testing.T) {
	const size = 64 * mib
	addr, mem, err := g.AllocManaged(size)
	check(t, err)
	for i := range mem {
		mem[i] = 1
	}
	result := must(g.Malloc(8, g.s))
	if g.Info().PageFaults {
		check(t, g.Advise(addr, size, cuda.PreferPlace, cuda.OnDevice))
		check(t, g.Advise(addr, size, cuda.AccessedFrom, cuda.OnHost))
		check(t, g.Prefetch(addr, size, cuda.OnDevice, g.s))
	}
	check(t, g.Fill(result, 0, 8, g.s))
	check(t, g.k.Sum(addr, size/8, result, g.s))
	check(t, g.k.Write(addr, size/8, 9, g.s))
	if g.Info().PageFaults {
		check(t, g.Advise(addr, size, cuda.PreferNoPlace, cuda.OnDevice))
		check(t, g.Prefetch(addr, size, cuda.OnHost, g.s))
	}
	sum := make([]byte, 8)
	check(t, g.CopyToHost(sum, result, g.s))
	check(t, g.Synchronize(g.s))
	var want uint64
	for range size / 8 {
		want += 0x0101010101010101
	}
	if got := binary.LittleEndian.Uint64(sum); got != want {
		t.Errorf("the device read %#x, want %#x", got, want)
	}
	for _, i := range []uint64{0, 1, size/8 - 1} {
		if got := binary.LittleEndian.Uint64(mem[8*i:]); got != kernels.Word(9, i) {
			t.Errorf("the host reads %#x at word %d, want %#x", got, i, kernels.Word(9, i))
		}
	}
	check(t, errors.Join(g.Free(addr, size), g.Free(result, 8)))
	t.Logf("page faults %t", g.Info().PageFaults)
}

func (g gpu) errors(t *testing.T) {
	_, err := g.LoadPTX(".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry broken() { nonsense; }\n")
	if code(err) == 0 || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("the compiler's words are missing: %v", err)
	}
	t.Logf("%v", err)
	m := must(g.LoadPTX(".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n"))
	if _, err := m.Function("something"); code(err) != 500 {
		t.Errorf("a kernel that is not there: %v", err)
	}
	f := must(m.Function("nothing"))
	check(t, f.Launch(g.s, cuda.Dim{X: 2, Y: 3, Z: 4}, cuda.Dim{X: 8, Y: 8}))
	err = f.Launch(g.s, cuda.Dim{}, cuda.Dim{X: 4096})
	if code(err) != 1 {
		t.Errorf("a block too large: %v", err)
	}
	t.Logf("%v", err)
	check(t, g.Synchronize(g.s))
	check(t, m.Close())
}
