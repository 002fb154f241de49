package tenant

import (
	"errors"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// loan is a revocable block.
type loan struct {
	tenant  *Tenant
	addr    uint64
	size    uint64
	revoke  func()
	revoked bool // under tenant.lending
}

// MallocRevocable returns memory that must be given back when asked: it may be
// guaranteed to another tenant that does not use it now. The revoke function is
// called once, on the goroutine of the request that needs the memory, without locks. It should
// free the block, or tell somebody to, and must not wait. The block is freed as any other.
func (t *Tenant) MallocRevocable(size, stream uint64, revoke func()) (uint64, error) {
	if revoke == nil {
		return 0, errors.New("tenant " + t.name + ": a revocable block needs a function that gives it back")
	}
	engine := t.lendingEngine()
	addr, err := engine.Malloc(size, stream)
	if err != nil {
		return 0, t.Describe(err)
	}
	if addr == 0 {
		return 0, nil
	}
	t.lending.Lock()
	defer t.lending.Unlock()
	l := &loan{tenant: t, addr: addr, size: size, revoke: revoke}
	t.lending.list = append(t.lending.list, l)
	t.lending.byAddr[addr] = l
	t.loans.Add(1)
	return addr, nil
}

// lendingEngine returns the allocator of the tenant's revocable blocks.
func (t *Tenant) lendingEngine() *alloc.Allocator {
	t.lending.Lock()
	defer t.lending.Unlock()
	if t.lending.engine == nil {
		t.lending.engine = alloc.New(&adaptor{Passing: driver.Passing{Driver: t.dev}, t: t, lending: true}, alloc.WithSettings(t.engine.Settings()))
		t.lending.byAddr = map[uint64]*loan{}
	}
	return t.lending.engine
}

// lender returns the allocator of a revocable block, nil if addr is none.
func (t *Tenant) lender(addr uint64) *alloc.Allocator {
	t.lending.Lock()
	defer t.lending.Unlock()
	if t.lending.byAddr[addr] == nil {
		return nil
	}
	return t.lending.engine
}

// endLoan forgets a revocable block that is about to be freed and returns its
// allocator, nil if addr is none.
func (t *Tenant) endLoan(addr uint64) *alloc.Allocator {
	t.lending.Lock()
	defer t.lending.Unlock()
	l := t.lending.byAddr[addr]
	if l == nil {
		return nil
	}
	delete(t.lending.byAddr, addr)
	t.lending.list = slices.DeleteFunc(t.lending.list, func(o *loan) bool { return o == l })
	t.loans.Add(-1)
	return t.lending.engine
}

// poll is how long a request that waits for revocable blocks sleeps at a time.
const poll = 200 * time.Microsecond

// recall gets size bytes back from the revocable blocks, and reports whether it did before the deadline.
func (g *Group) recall(t *Tenant, size uint64) bool {
	deadline := g.now().Add(g.options.RevokeWithin)
	for {
		tenants := g.list()
		g.collectLoans(tenants)
		missing := g.ledger.missing(&t.account, size, deadline.Add(g.options.RevokeWithin))
		if missing == 0 {
			return true
		}
		if g.revoke(tenants, missing) {
			continue // what was freed in the callbacks counts at once
		}
		now := g.now()
		if !now.Before(deadline) {
			g.ledger.missing(&t.account, 0, now)
			return false
		}
		g.sleep(min(poll, deadline.Sub(now)))
	}
}

// revoke asks for blocks, lowest priority and youngest first, until those that
// were asked for have the missing bytes. It reports whether it asked for any.
func (g *Group) revoke(tenants []*Tenant, missing uint64) bool {
	var chosen []*loan
	asked := uint64(0)
	for _, t := range tenants {
		t.lending.Lock()
		for _, l := range t.lending.list {
			if l.revoked {
				asked += l.size
			}
		}
		t.lending.Unlock()
	}
	for _, t := range tenants {
		t.lending.Lock()
		for _, l := range slices.Backward(t.lending.list) {
			if !l.revoked && asked < missing {
				l.revoked = true
				asked += l.size
				chosen = append(chosen, l)
			}
		}
		t.lending.Unlock()
	}
	for _, l := range chosen {
		l.revoke()
	}
	return len(chosen) > 0
}

// collectLoans gives the memory of revocable blocks that were freed back to the
// driver, and returns how much that was. It waits for no stream.
func (g *Group) collectLoans(tenants []*Tenant) (released uint64) {
	for _, t := range tenants {
		t.lending.Lock()
		engine := t.lending.engine
		t.lending.Unlock()
		if engine != nil {
			g.noteRelease(engine.ProcessEvents())
			released += g.trimNow(engine)
		}
	}
	return released
}
