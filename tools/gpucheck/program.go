package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/settings"
)

// plan says what random programs do.
type plan struct {
	seed       uint64
	operations int
	longest    time.Duration // a program that takes longer ends early
	limit      uint64        // on reserved memory: small, so that all of it is always in use
	largest    uint64        // request
	streams    int           // besides stream 0
	slots      int           // checks between two looks at their results
	spin       time.Duration // longest delay of a stream
	confs      []string      // settings to run under, a program each
}

// held is a block that the program has.
type held struct {
	id, addr, size uint64
	seed           uint64 // of the pattern in it
	home           int    // stream it was allocated on
	users          []int  // other streams it was recorded on
}

// program is a random program that is correct: it uses memory of another
// stream only after an event, and records the use. Whatever it finds wrong is
// the allocator's fault, or the device's.
type program struct {
	plan      plan
	rng       *rand.Rand
	dev       *ledger
	paint     painter
	allocator *alloc.Allocator
	streams   []uint64
	pools     []*alloc.MemPool

	op     int
	ids    uint64
	live   []*held
	byAddr []*held // live, by address
	fences []driver.Event
	checks []check // one for each slot in use
	pooled bool    // a pool receives the allocations
	report programReport
}

// check says what a slot is about.
type check struct {
	op, stream int
	block      held
}

// programReport is what a program did and found.
type programReport struct {
	Conf            string `json:"conf"`
	Operations      int    `json:"operations"`
	Allocations     int64  `json:"allocations"`
	PoolAllocations int64  `json:"pool_allocations"`
	Frees           int64  `json:"frees"`
	OtherStreams    int64  `json:"uses_on_other_streams"`
	SpotChecks      int64  `json:"spot_checks"`
	EmptyCaches     int64  `json:"empty_caches"`
	Retries         int64  `json:"retries"`
	OOMs            int64  `json:"ooms"`
	WrittenBytes    uint64 `json:"written_bytes"`
	CheckedBytes    uint64 `json:"checked_bytes"`
	PeakBytes       int64  `json:"peak_reserved_bytes"`
	Calls           calls  `json:"device_calls"`

	Checks     int64    `json:"checks"`
	Mismatches uint64   `json:"mismatching_words"`
	Problems   []string `json:"problems"`
	Missing    []string `json:"did_not_happen"` // what the program was to exercise and did not
	OK         bool     `json:"ok"`
	Seconds    float64  `json:"seconds"`
}

// problemsKept bounds how many problems are written down.
const problemsKept = 10

func (p *program) problem(format string, args ...any) {
	if len(p.report.Problems) < problemsKept {
		p.report.Problems = append(p.report.Problems, fmt.Sprintf("operation %d: ", p.op)+fmt.Sprintf(format, args...))
	}
}

// newProgram prepares a program under some settings.
func newProgram(r *rig, pl plan, conf string, streams []uint64, paint painter) (*program, error) {
	cfg, err := settings.Parse(conf)
	if err != nil {
		return nil, err
	}
	p := &program{
		plan: pl, rng: rand.New(rand.NewPCG(pl.seed, pl.seed)), dev: newLedger(r.dev), paint: paint, streams: streams,
		report: programReport{Conf: conf, Problems: []string{}, Missing: []string{}},
	}
	p.allocator = alloc.New(p.dev, alloc.WithSettings(cfg))
	p.allocator.SetLimit(pl.limit)
	return p, nil
}

// run performs the operations and then gives everything back.
func (p *program) run(ctx context.Context) error {
	start := time.Now()
	for p.op = 0; p.op < p.plan.operations && ctx.Err() == nil && time.Since(start) < p.plan.longest; p.op++ {
		if err := p.step(); err != nil {
			return fmt.Errorf("operation %d under %q: %w", p.op, p.report.Conf, err)
		}
		if len(p.report.Problems) == problemsKept {
			break
		}
	}
	p.report.Operations = p.op
	if err := p.finish(); err != nil {
		return fmt.Errorf("at the end, under %q: %w", p.report.Conf, err)
	}
	p.report.Seconds = time.Since(start).Seconds()
	p.judge()
	return context.Cause(ctx)
}

// step performs one random operation.
func (p *program) step() error {
	if p.op%64 == 0 {
		if err := p.recycle(); err != nil {
			return err
		}
	}
	switch x := p.rng.Float64(); {
	case x < 0.46 || len(p.live) == 0:
		return p.malloc()
	case x < 0.78:
		return p.free(p.rng.IntN(len(p.live)))
	case x < 0.90:
		return p.share(p.live[p.rng.IntN(len(p.live))])
	case x < 0.95:
		p.report.SpotChecks++
		return p.verify(p.live[p.rng.IntN(len(p.live))], -1)
	case x < 0.97:
		return p.paint.spin(p.streams[p.rng.IntN(len(p.streams))], p.delay())
	case x < 0.98:
		if p.pooled {
			return nil
		}
		p.report.EmptyCaches++
		return p.allocator.EmptyCache()
	default:
		if p.pooled {
			return nil
		}
		return p.usePool()
	}
}

// delay is a random time that a stream is kept busy.
func (p *program) delay() time.Duration {
	return time.Duration(p.rng.Int64N(int64(p.plan.spin)) + 1)
}

// malloc gets a block and fills it. If there is no memory it frees a third of
// what it has.
func (p *program) malloc() error {
	home := p.rng.IntN(len(p.streams))
	b := &held{id: p.ids, size: randomSize(p.rng, p.plan.largest), seed: p.rng.Uint64(), home: home}
	addr, err := p.allocator.Malloc(b.size, p.streams[home])
	var oom *alloc.OutOfMemoryError
	if errors.As(err, &oom) {
		return p.shed()
	}
	if err != nil {
		return err
	}
	p.ids++
	b.addr = addr
	p.report.Allocations++
	if p.pooled {
		p.report.PoolAllocations++
	}
	p.keep(b)
	p.report.WrittenBytes += b.size
	return p.paint.write(b.addr, b.size, b.seed, p.streams[home])
}

// keep notes a new block and makes sure that it lies on no other.
func (p *program) keep(b *held) {
	p.live = append(p.live, b)
	i, _ := slices.BinarySearchFunc(p.byAddr, b.addr, compareAddr)
	if i > 0 && p.byAddr[i-1].addr+p.byAddr[i-1].size > b.addr {
		p.problem("block %d at %#x lies on block %d", b.id, b.addr, p.byAddr[i-1].id)
	}
	if i < len(p.byAddr) && b.addr+b.size > p.byAddr[i].addr {
		p.problem("block %d at %#x lies on block %d", b.id, b.addr, p.byAddr[i].id)
	}
	p.byAddr = slices.Insert(p.byAddr, i, b)
}

func compareAddr(b *held, addr uint64) int {
	switch {
	case b.addr < addr:
		return -1
	case b.addr > addr:
		return 1
	}
	return 0
}

// shed frees a third of the blocks.
func (p *program) shed() error {
	for n := len(p.live)/3 + 1; n > 0 && len(p.live) > 0; n-- {
		if err := p.free(p.rng.IntN(len(p.live))); err != nil {
			return err
		}
	}
	return nil
}

// free checks a block on its stream, and on those others that use it, and
// gives it back while all of these checks may still be waiting.
func (p *program) free(i int) error {
	b := p.live[i]
	p.live[i] = p.live[len(p.live)-1]
	p.live = p.live[:len(p.live)-1]
	if err := p.verify(b, -1); err != nil {
		return err
	}
	for _, user := range b.users {
		if p.rng.IntN(2) == 0 {
			continue
		}
		if err := p.verify(b, user); err != nil {
			return err
		}
	}
	at, _ := slices.BinarySearchFunc(p.byAddr, b.addr, compareAddr)
	p.byAddr = slices.Delete(p.byAddr, at, at+1)
	p.report.Frees++
	return p.allocator.Free(b.addr)
}

// verify queues a check of a block on its own stream (-1), or on another one,
// which first waits for it.
func (p *program) verify(b *held, user int) error {
	stream := b.home
	if user >= 0 {
		stream = user
		if err := p.order(b.home, user); err != nil {
			return err
		}
	}
	if len(p.checks) == p.plan.slots {
		if err := p.readResults(); err != nil {
			return err
		}
	}
	p.checks = append(p.checks, check{p.op, stream, *b})
	p.report.Checks++
	p.report.CheckedBytes += b.size
	return p.paint.check(b.addr, b.size, b.seed, p.streams[stream], len(p.checks)-1)
}

// order lets what is queued on one stream from now on wait for what another
// has queued up to now.
func (p *program) order(before, after int) error {
	ev, err := p.dev.RecordEvent(p.streams[before], 0)
	if err != nil {
		return err
	}
	p.fences = append(p.fences, ev)
	return p.dev.StreamWait(p.streams[after], ev)
}

// share uses a block on another stream, which may be far behind, and records
// that. Half of the time the other stream writes: then the home stream waits.
func (p *program) share(b *held) error {
	user := p.rng.IntN(len(p.streams))
	if user == b.home || p.pooled {
		// While a pool receives allocations, PyTorch takes record_stream for
		// that of a graph capture and forgets it if the block is freed before
		// the end (spec 5.5). A program that wants to be safe does not rely
		// on it there.
		return nil
	}
	p.report.OtherStreams++
	if err := p.allocator.RecordStream(b.addr, p.streams[user]); err != nil {
		return err
	}
	if !slices.Contains(b.users, user) {
		b.users = append(b.users, user)
	}
	if p.rng.IntN(4) == 0 {
		if err := p.paint.spin(p.streams[user], p.delay()); err != nil {
			return err
		}
	}
	if err := p.verify(b, user); err != nil || p.rng.IntN(2) == 0 {
		return err
	}
	for _, reader := range b.users { // who may not have read it yet
		if reader != user {
			if err := p.order(reader, user); err != nil {
				return err
			}
		}
	}
	b.seed = p.rng.Uint64()
	p.report.WrittenBytes += b.size
	if err := p.paint.write(b.addr, b.size, b.seed, p.streams[user]); err != nil {
		return err
	}
	return p.order(user, b.home)
}

// usePool directs a few operations to a pool of their own, and now and then
// gives a pool up, with blocks in it or without.
func (p *program) usePool() error {
	if len(p.pools) < 2 {
		pool, err := p.allocator.NewMemPool(alloc.MemPoolOptions{NoSplit: p.rng.IntN(4) == 0, UseOnOOM: p.rng.IntN(4) == 0})
		if err != nil {
			return err
		}
		p.pools = append(p.pools, pool)
	}
	i := p.rng.IntN(len(p.pools))
	pool := p.pools[i]
	if err := pool.Begin(0); err != nil {
		return err
	}
	p.pooled = true
	var err error
	for n := p.rng.IntN(16); n >= 0 && err == nil; n-- {
		err = p.step()
	}
	p.pooled = false
	if err := errors.Join(err, pool.End()); err != nil {
		return err
	}
	if p.rng.IntN(3) > 0 {
		return nil
	}
	p.pools = slices.Delete(p.pools, i, i+1)
	return pool.Close()
}

// recycle gives back the events that are done.
func (p *program) recycle() error {
	kept := p.fences[:0]
	for i, ev := range p.fences {
		done, err := p.dev.EventDone(ev)
		if err != nil {
			return errors.Join(err, fmt.Errorf("event %d", i))
		}
		if !done {
			kept = append(kept, ev)
		}
	}
	p.fences = kept
	return nil
}

// readResults waits for all streams and reads the results of the checks.
func (p *program) readResults() error {
	for _, s := range p.streams {
		if err := p.dev.Synchronize(s); err != nil {
			return err
		}
	}
	found, err := p.paint.results(len(p.checks))
	if err != nil {
		return err
	}
	for i, f := range found {
		if f.Bad == 0 {
			continue
		}
		c := &p.checks[i]
		p.report.Mismatches += f.Bad
		p.problem("block %d at %#x, of %d bytes and stream %d, checked on stream %d in operation %d: %d words are not as written, from word %d on",
			c.block.id, c.block.addr, c.block.size, c.block.home, c.stream, c.op, f.Bad, f.First)
	}
	p.checks = p.checks[:0]
	return nil
}
