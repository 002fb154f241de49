package replay

import (
	"errors"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver/sim"
)

// Host makes the allocator of a run that takes place beside others. The device
// and the options are those that the run would have if it were alone.
type Host func(d *sim.Device, opts ...alloc.Option) (*Hosted, error)

// Hosted is the allocator of a run beside others.
type Hosted struct {
	Allocator *alloc.Allocator
	// Malloc is how the run allocates.
	Malloc func(size, stream uint64) (uint64, error)
	// Device is the one that the allocator uses; nil if it is the run's own.
	Device *sim.Device
	// Member distinguishes the private pools of runs that share an allocator.
	Member uint64
	// Requested: what was allocated before the first call is requested then, and
	// not restored as it lay.
	Requested bool
}

// moveIn takes the allocator that a host makes.
func (r *simulation) moveIn(host Host, options []alloc.Option) (err error) {
	if r.hosted, err = host(r.device, options...); err != nil {
		return err
	}
	r.allocator = r.hosted.Allocator
	if r.hosted.Device != nil {
		r.device = r.hosted.Device
	}
	return nil
}

// apart returns what is added to the numbers of made-up streams and pools, which
// are below 2^44, so that no two runs or passes share one.
func (r *simulation) apart() uint64 {
	if r.hosted == nil {
		return 0
	}
	return (r.hosted.Member<<8 + r.pass%256) << 44
}

func (r *simulation) waitStream(n int) uint64 { return waitStream + r.apart() + uint64(n) }

func (r *simulation) poolID(id alloc.PoolID) alloc.PoolID {
	switch {
	case id.First != 0:
		id.First += r.apart()
	case id.Second != 0:
		id.Second += r.apart()
	}
	return id
}

func (r *simulation) malloc(size, stream uint64) (alloc.Handle, error) {
	if r.hosted == nil {
		return r.serial.Malloc(size, stream)
	}
	addr, err := r.hosted.Malloc(size, stream)
	if err != nil {
		return 0, err
	}
	return r.serial.Find(addr), nil
}

// Stepped is a run beside others, which its caller advances call by call.
type Stepped struct {
	run  *simulation
	live uint64
}

// Step sets a run up on the allocator of a host.
func (p *Program) Step(c Conditions, host Host) (*Stepped, error) {
	r, err := p.simulate(c, host)
	if err != nil {
		return nil, err
	}
	s := &Stepped{run: r}
	for _, h := range r.handles {
		s.live += s.size(h)
	}
	return s, nil
}

// Begin puts a run just before its first call: what is allocated there is
// requested, unless it was restored.
func (s *Stepped) Begin() error {
	if s.run.hosted.Requested {
		return s.request()
	}
	return nil
}

func (s *Stepped) size(h alloc.Handle) uint64 {
	if h == 0 {
		return 0
	}
	return s.run.serial.Size(h)
}

// request allocates the tensors from before the first call that are not there.
func (s *Stepped) request() error {
	r := s.run
	tensor := 0
	for i := range r.initial {
		seg := &r.initial[i]
		for _, b := range seg.Blocks {
			tensor++
			if b.State == alloc.Inactive || r.handles[tensor-1] != 0 {
				continue
			}
			size := b.RequestedSize
			if size == 0 {
				size = b.Size
			}
			h, err := r.routed(size, &place{seg.Stream, seg.Pool})
			if err != nil && !errors.As(err, new(*alloc.OutOfMemoryError)) {
				return err
			}
			if err != nil {
				r.failures, r.failure = r.failures+1, err
				r.outcome.Fails = true
				if r.ended() {
					return nil
				}
			}
			r.handles[tensor-1] = h
			s.live += s.size(h)
		}
	}
	for _, w := range r.freed {
		s.live -= s.size(r.handles[w.tensor])
	}
	return r.freeStart()
}

// Next makes the next call. It returns why a request of it failed, if one did, and
// any error other than that.
func (s *Stepped) Next() (failure, err error) {
	r := s.run
	at, before := r.outcome.Calls, r.failures
	switch c := r.calls[at]; c.kind() {
	case CallFree, CallFreeLater:
		s.live -= s.size(r.handles[c.tensor])
		err = r.makeCalls(at, at+1)
	case CallAlloc:
		if err = r.makeCalls(at, at+1); err == nil {
			s.live += s.size(r.handles[c.tensor])
		}
	default:
		err = r.makeCalls(at, at+1)
	}
	r.outcome.Calls = at + 1
	if err == nil && r.failures > before {
		return r.failure, nil
	}
	return nil, err
}

// Done reports whether all calls were made.
func (s *Stepped) Done() bool { return s.run.outcome.Calls == len(s.run.calls) }

// Live returns the bytes of the blocks that the run has allocated.
func (s *Stepped) Live() uint64 { return s.live }

// Failures returns how many requests failed.
func (s *Stepped) Failures() int { return s.run.failures }

// End frees what the run has allocated, as a program that ends does.
func (s *Stepped) End() error {
	for i, h := range s.run.handles {
		if err := s.run.serial.Free(h); err != nil {
			return err
		}
		s.run.handles[i] = 0
	}
	s.live = 0
	return s.run.pools.CloseAll()
}

// Again begins the run once more: what the first calls left is freed, and
// what was there before them is requested.
func (s *Stepped) Again() error {
	if err := s.End(); err != nil {
		return err
	}
	s.run.outcome.Calls = 0
	s.run.pass++
	return s.request()
}

// Outcome closes the run's account.
func (s *Stepped) Outcome() *Outcome {
	s.run.closePiece(false)
	return s.run.finish()
}
