package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/driver/host"
	"github.com/ashlar-mem/ashlar/driver/sim"
	"github.com/ashlar-mem/ashlar/settings"
)

// twin gives every call of the engine to the device and to the simulated one:
// both must accept it or both refuse it.
type twin struct {
	*host.Device
	t     *testing.T
	model *sim.Device
	at    map[uint64]uint64 // where a segment or a reservation of the device begins in the model
	calls sim.Counts
}

func (w *twin) same(kind sim.Kind, err, modelErr error) {
	w.t.Helper()
	w.calls[kind]++
	if (err == nil) != (modelErr == nil) || errors.Is(err, driver.ErrOutOfMemory) != errors.Is(modelErr, driver.ErrOutOfMemory) {
		w.t.Errorf("%v: %v over memory, %v in the model", kind, err, modelErr)
	}
	if w.Held() != w.model.Held() {
		w.t.Errorf("%v: %d bytes held, %d in the model", kind, w.Held(), w.model.Held())
	}
}

func (w *twin) Malloc(size, stream uint64) (uint64, error) {
	addr, err := w.Device.Malloc(size, stream)
	other, modelErr := w.model.Malloc(size, stream)
	w.same(sim.Malloc, err, modelErr)
	w.at[addr] = other
	return addr, err
}

func (w *twin) Free(addr, size uint64) error {
	err := w.Device.Free(addr, size)
	w.same(sim.Free, err, w.model.Free(w.at[addr], size))
	return err
}

func (w *twin) Reserve(size, stream uint64) (uint64, error) {
	addr, err := w.Device.Reserve(size, stream)
	other, modelErr := w.model.Reserve(size, stream)
	w.same(sim.Reserve, err, modelErr)
	w.at[addr] = other
	return addr, err
}

func (w *twin) Unreserve(addr, size uint64) error {
	err := w.Device.Unreserve(addr, size)
	w.same(sim.Unreserve, err, w.model.Unreserve(w.at[addr], size))
	return err
}

// in translates an address inside a reservation.
func (w *twin) in(addr uint64) uint64 {
	base := uint64(0)
	for at := range w.at {
		if at <= addr && at > base {
			base = at
		}
	}
	return w.at[base] + addr - base
}

func (w *twin) Map(addr, size, granule uint64) error {
	err := w.Device.Map(addr, size, granule)
	w.same(sim.Map, err, w.model.Map(w.in(addr), size, granule))
	return err
}

func (w *twin) Unmap(addr, size, granule, stream uint64) error {
	err := w.Device.Unmap(addr, size, granule, stream)
	w.same(sim.Unmap, err, w.model.Unmap(w.in(addr), size, granule, stream))
	return err
}

// TestEngine runs random programs of the engine: the device answers as the
// simulated one does, and every block keeps what was written into it until it
// is freed.
func TestEngine(t *testing.T) {
	const memory = 48 * mib
	for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:30,garbage_collection_threshold:0.6"} {
		t.Run(conf, func(t *testing.T) {
			set := must[settings.Settings](t)(settings.Parse(conf))
			w := &twin{Device: open(t, memory), t: t, model: sim.New(sim.Config{TotalMemory: memory}), at: map[uint64]uint64{}}
			p := program{t: t, d: w.Device, a: alloc.New(w, alloc.WithSettings(set)), r: rand.New(rand.NewPCG(1, 9)), streams: []uint64{0}}
			for range 2 {
				p.streams = append(p.streams, must[uint64](t)(w.NewStream()))
			}
			for range 1500 {
				p.step()
			}
			for len(p.live) > 0 {
				p.free(0)
			}
			check(t, p.a.EmptyCache())
			if w.Held() != 0 {
				t.Errorf("%d bytes are held in the end", w.Held())
			}
			used := []sim.Kind{sim.Malloc, sim.Free}
			if set.ExpandableSegments {
				used = []sim.Kind{sim.Reserve, sim.Unreserve, sim.Map, sim.Unmap}
			}
			for _, k := range used {
				if w.calls[k] < 2 {
					t.Errorf("%d calls of %v: nothing was tested", w.calls[k], k)
				}
			}
			if s := p.a.Stats(); s.NumOOMs == 0 || s.NumAllocRetries == 0 {
				t.Error("memory never ran out: nothing was tested")
			}
		})
	}
}

type program struct {
	t       *testing.T
	d       *host.Device
	a       *alloc.Allocator
	r       *rand.Rand
	streams []uint64
	live    []held
	next    byte
}

type held struct {
	addr, size, stream uint64
	value              byte
}

func (p *program) step() {
	switch n := p.r.IntN(40); {
	case n < 22:
		p.malloc()
	case n < 39:
		if len(p.live) > 0 {
			p.free(p.r.IntN(len(p.live)))
		}
	default:
		check(p.t, p.a.EmptyCache())
	}
}

func (p *program) malloc() {
	size := uint64(1)<<p.r.UintN(23) + p.r.Uint64N(2000)
	stream := p.streams[p.r.IntN(len(p.streams))]
	addr, err := p.a.Malloc(size, stream)
	if errors.Is(err, driver.ErrOutOfMemory) {
		return
	}
	check(p.t, err)
	p.next++
	check(p.t, p.d.Fill(addr, p.next, size, stream))
	p.live = append(p.live, held{addr, size, stream, p.next})
}

func (p *program) free(i int) {
	h := p.live[i]
	p.live[i] = p.live[len(p.live)-1]
	p.live = p.live[:len(p.live)-1]
	check(p.t, p.d.Synchronize(h.stream))
	for at, b := range must[[]byte](p.t)(p.d.Bytes(h.addr, h.size)) {
		if b != h.value {
			p.t.Fatalf("byte %d of %d at %#x is %#x, want %#x", at, h.size, h.addr, b, h.value)
		}
	}
	check(p.t, p.a.Free(h.addr))
}

// TestConcurrent uses one device from several goroutines; the race detector
// looks on.
func TestConcurrent(t *testing.T) {
	d := open(t, 256*mib)
	a := alloc.New(d)
	var wg sync.WaitGroup
	for g := range byte(4) {
		wg.Go(func() {
			stream, err := d.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			for range 30 {
				if err := worker(d, a, stream, g+1); err != nil {
					t.Error(err)
				}
			}
			if err := d.CloseStream(stream); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// worker writes on its stream, reads on stream 0 after an event, and frees
// without waiting: record_stream keeps the block until the copy was done.
func worker(d driver.Copier, a *alloc.Allocator, stream uint64, value byte) error {
	const size = 300_000
	addr, err := a.Malloc(size, stream)
	if err != nil {
		return err
	}
	if err := d.Fill(addr, value, size, stream); err != nil {
		return err
	}
	ev, err := d.RecordEvent(stream, addr)
	if err != nil {
		return err
	}
	got := make([]byte, size)
	if err := d.StreamWait(0, ev); err != nil {
		return err
	}
	if err := d.CopyToHost(got, addr, 0); err != nil {
		return err
	}
	if err := a.RecordStream(addr, 0); err != nil {
		return err
	}
	if err := a.Free(addr); err != nil {
		return err
	}
	if err := d.WaitEvent(ev); err != nil {
		return err
	}
	if err := d.Synchronize(0); err != nil {
		return err
	}
	for i, b := range got {
		if b != value {
			return fmt.Errorf("byte %d is %d, want %d", i, b, value)
		}
	}
	return nil
}
