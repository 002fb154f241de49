package tenant

import (
	"errors"

	"github.com/ashlar-mem/ashlar/alloc"
)

// makeRoom is asked when a request of the tenant is about to fail. It holds no
// lock and takes those of others one at a time, so tenants that release each
// other's caches cannot wait for one another.
func (t *Tenant) makeRoom(oom *alloc.OutOfMemoryError) bool {
	var need *refusal
	if !errors.As(oom.Refusal, &need) {
		return false // the allocator's own limit, for instance
	}
	g := t.group
	g.releaseFailed.Store(nil)
	switch need.reason {
	case AboveLimit:
		return g.trim(t, g.list(), need.short) > 0
	case LentOut:
		return g.recall(t, need.size)
	case DeviceFull:
		tenants := g.list()
		return g.collectLoans(tenants)+g.trim(t, tenants, need.short) > 0
	}
	return false
}

// trim releases the caches of others that have more than their guarantee, in the
// order of tenants, until want bytes are gained, and returns how many were. First
// it takes what is free at once, then what waits for the work of streams.
func (g *Group) trim(t *Tenant, tenants []*Tenant, want uint64) (gained uint64) {
	for _, release := range []func(*alloc.Allocator) uint64{g.trimNow, g.trimWaiting} {
		for _, o := range tenants {
			if o == t {
				continue
			}
			spare := g.ledger.spare(&o.account)
			if spare == 0 {
				continue
			}
			released := release(o.engine)
			if released == 0 {
				continue
			}
			g.ledger.countTrim(&o.account, &t.account)
			if gained += min(released, spare); gained >= want {
				return gained
			}
		}
	}
	return gained
}

// trimNow releases what is cached.
func (g *Group) trimNow(a *alloc.Allocator) uint64 {
	released, err := a.Trim(0)
	g.noteRelease(err)
	return released
}

// trimWaiting releases what is cached after waiting for freed blocks that
// streams still use.
func (g *Group) trimWaiting(a *alloc.Allocator) uint64 {
	before := a.Usage()
	if before.Active == before.Allocated {
		return 0
	}
	g.noteRelease(a.EmptyCache())
	return before.Reserved - min(before.Reserved, a.Usage().Reserved)
}

// noteRelease keeps why a cache could not be released, for the error of the request
// that needs it. A capture that forbids it is no failure.
func (g *Group) noteRelease(err error) {
	if err != nil && !errors.As(err, new(*alloc.RouteActiveError)) {
		g.releaseFailed.Store(&err)
	}
}
