package tenant

import (
	"cmp"
	"sync"
	"time"

	"github.com/ashlar-mem/ashlar/driver"
)

// page is the unit in which devices hand out memory.
const page = 2 << 20

// charge returns what size bytes take of a device.
func charge(size uint64) uint64 { return (size + page - 1) &^ (page - 1) }

// Reason says why a tenant got no memory.
type Reason uint8

// The reasons.
const (
	NotRefused Reason = iota // by the group; the allocator's own limit, for instance
	AboveCeiling
	AboveLimit // what others hold and what is guaranteed to them leaves too little
	LentOut    // the memory is lent as revocable blocks
	DeviceFull // the group allowed it, but the device refused
	TenantClosed
)

// refusal is why and of how much a tenant's driver refused. The engine sees a device
// without memory, and keeps it in the error of the request.
type refusal struct {
	reason    Reason
	size      uint64
	firm      uint64 // what the tenant had reserved
	short     uint64 // what others would have to give back
	revocable bool   // for a revocable block
	device    error  // what the device said, if it was asked
}

func (r *refusal) Error() string {
	if r.device != nil {
		return r.device.Error()
	}
	return "tenant: " + driver.ErrOutOfMemory.Error() + ": " + refusals[r.reason]
}

// Unwrap lets errors.Is find driver.ErrOutOfMemory.
func (r *refusal) Unwrap() error { return cmp.Or(r.device, driver.ErrOutOfMemory) }

var refusals = [...]string{
	AboveCeiling: "above the ceiling",
	AboveLimit:   "above the group's limit",
	LentOut:      "lent to other tenants",
	TenantClosed: "the tenant is closed",
}

// account is a tenant in the ledger.
type account struct {
	guarantee, ceiling uint64
	reserved           uint64 // firm
	borrowed           uint64 // for revocable blocks
	closed             bool

	// claim is memory that others are giving back for this account: until
	// claimEnd nobody borrows it.
	claim    uint64
	claimEnd time.Time

	trims, trimsCaused int64
}

func (a *account) committed() uint64 { return max(a.reserved, a.guarantee) }

// ledger has the bytes of all tenants. Its lock is the innermost one.
type ledger struct {
	mu        sync.Mutex
	limit     uint64
	committed uint64 // the sum of max(reserved, guarantee)
	firm      uint64 // the sum of reserved
	lent      uint64 // the sum of borrowed
	accounts  []*account
}

// grant books d bytes for an account if the rule allows it, and returns nil.
func (l *ledger) grant(a *account, d uint64) *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.claim = 0
	if why, short := l.check(a, d); why != NotRefused {
		return &refusal{reason: why, size: d, firm: a.reserved, short: short}
	}
	l.book(a, a.reserved+d)
	return nil
}

// check applies the rule. What fits into the guarantee is allowed even where
// adopted memory has broken the limit.
func (l *ledger) check(a *account, d uint64) (why Reason, short uint64) {
	switch r := a.reserved + d; {
	case a.closed:
		return TenantClosed, 0
	case a.ceiling > 0 && r > a.ceiling:
		return AboveCeiling, 0
	case r > a.guarantee && l.committed-a.committed()+r > l.limit:
		return AboveLimit, l.committed - a.committed() + r - l.limit
	case l.lent > 0 && l.firm+l.lent+d > l.limit:
		return LentOut, l.firm + l.lent + d - l.limit
	}
	return NotRefused, 0
}

// book sets what an account has reserved.
func (l *ledger) book(a *account, reserved uint64) {
	l.committed -= a.committed()
	l.firm += reserved - a.reserved
	a.reserved = reserved
	l.committed += a.committed()
}

// release books d bytes back.
func (l *ledger) release(a *account, d uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book(a, a.reserved-d)
}

// firmOf returns what an account has reserved.
func (l *ledger) firmOf(a *account) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.reserved
}

// adopt books memory that is there already.
func (l *ledger) adopt(a *account, d uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book(a, a.reserved+d)
}

// borrow books d bytes for revocable blocks if they are idle and nobody waits
// for them, and returns nil.
func (l *ledger) borrow(a *account, d uint64, now time.Time) *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.firm + l.lent
	for _, o := range l.accounts {
		if o.claim > 0 && now.Before(o.claimEnd) {
			taken += o.claim
		}
	}
	why := NotRefused
	switch {
	case a.closed:
		why = TenantClosed
	case a.ceiling > 0 && a.reserved+a.borrowed+d > a.ceiling:
		why = AboveCeiling
	case taken+d > l.limit:
		why = AboveLimit
	}
	if why != NotRefused {
		return &refusal{reason: why, size: d, firm: a.reserved, revocable: true}
	}
	a.borrowed += d
	l.lent += d
	return nil
}

// giveBack books borrowed bytes back.
func (l *ledger) giveBack(a *account, d uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.borrowed -= d
	l.lent -= d
}

// missing returns how much of d bytes is lent. The account's claim keeps others
// from borrowing it until end.
func (l *ledger) missing(a *account, d uint64, end time.Time) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.claim, a.claimEnd = d, end
	have := l.limit - min(l.limit, l.firm+d)
	return l.lent - min(l.lent, have)
}

// spare returns how much an account has above its guarantee.
func (l *ledger) spare(a *account) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.reserved - min(a.reserved, a.guarantee)
}

// countTrim notes that an account's cache was released for another one.
func (l *ledger) countTrim(of, by *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.trims++
	by.trimsCaused++
}

// setTerms changes an account's guarantee and ceiling if the limit has room for the
// guarantee, and else returns by how much it has not.
func (l *ledger) setTerms(a *account, guarantee, ceiling uint64) (short uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if guarantee > a.guarantee {
		if after := l.committed - a.committed() + max(a.reserved, guarantee); after > l.limit {
			return after - l.limit
		}
	}
	l.committed -= a.committed()
	a.guarantee, a.ceiling = guarantee, ceiling
	l.committed += a.committed()
	return 0
}
