package tenant

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// Tenant is one user of a group's memory.
type Tenant struct {
	group    *Group
	name     string
	dev      driver.Driver
	priority int // under the group's lock
	engine   *alloc.Allocator
	hold     *hold // nil without Options.Hold
	account  account

	loans   atomic.Int64 // revocable blocks in use
	lending struct {
		sync.Mutex
		engine *alloc.Allocator // of revocable blocks; nil until the first
		list   []*loan          // oldest first
		byAddr map[uint64]*loan
	}
}

// Name returns the tenant's name.
func (t *Tenant) Name() string { return t.name }

// Allocator returns the tenant's allocator, for what Tenant has no method for:
// pools, captures, statistics, alloc/monitor. Its errors are the engine's; revocable
// blocks are not in it.
func (t *Tenant) Allocator() *alloc.Allocator { return t.engine }

// Malloc is [alloc.Allocator.Malloc]. A request that cannot be served gets an
// [*OutOfMemoryError].
func (t *Tenant) Malloc(size, stream uint64) (uint64, error) {
	addr, err := t.engine.Malloc(size, stream)
	if err != nil {
		return 0, t.Describe(err)
	}
	return addr, nil
}

// Free is [alloc.Allocator.Free], for revocable blocks too.
func (t *Tenant) Free(addr uint64) error {
	if t.loans.Load() > 0 {
		if engine := t.endLoan(addr); engine != nil {
			return engine.Free(addr)
		}
	}
	return t.engine.Free(addr)
}

// RecordStream is [alloc.Allocator.RecordStream], for revocable blocks too. The
// stream may be one that another tenant uses.
func (t *Tenant) RecordStream(addr, stream uint64) error {
	if t.loans.Load() > 0 {
		if engine := t.lender(addr); engine != nil {
			return engine.RecordStream(addr, stream)
		}
	}
	return t.engine.RecordStream(addr, stream)
}

// Stats returns the statistics of the tenant's allocator.
func (t *Tenant) Stats() alloc.Stats { return t.engine.Stats() }

// Resize changes the tenant's terms, but not its driver. If the others leave no room for the guarantee,
// nothing changes and the error is a [*GuaranteeError], which says who holds the
// memory. A ceiling below what the tenant has takes nothing away.
func (t *Tenant) Resize(terms Terms) error {
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := terms.check(t.name, g.limit()); err != nil {
		return err
	}
	if g.find(t.name) != t {
		return errors.New("tenant " + t.name + " is closed")
	}
	if err := g.setTerms(t, terms); err != nil {
		return err
	}
	t.priority = terms.Priority
	return nil
}

// Close gives the tenant's memory and its guarantee back. A tenant with memory in
// use stays as it is, and the error is an [*InUseError].
func (t *Tenant) Close() error {
	t.lending.Lock()
	lender := t.lending.engine
	t.lending.Unlock()
	if lender != nil {
		if err := lender.EmptyCache(); err != nil {
			return err
		}
	}
	if err := t.engine.EmptyCache(); err != nil {
		return err
	}
	g := t.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.find(t.name) != t {
		return nil
	}
	if n := g.ledger.close(&t.account); n > 0 {
		return &InUseError{Tenant: t.name, Bytes: n}
	}
	for i, o := range g.tenants {
		if o == t {
			g.tenants = append(g.tenants[:i:i], g.tenants[i+1:]...)
			break
		}
	}
	if t.hold != nil {
		return t.hold.resize()
	}
	return nil
}
