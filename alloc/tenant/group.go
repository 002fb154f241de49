package tenant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
	"github.com/ashlar-mem/ashlar/settings"
)

// Options change how a group works. The zero value is the default.
type Options struct {
	// Hold takes the memory of every guarantee from the device when the tenant is
	// added, and keeps it, so that other processes cannot take it. The driver must be a
	// [driver.PhysicalMapper]. Held memory is not lent.
	Hold bool
	// RevokeWithin is how long a request waits for revocable blocks; 0 is 100 ms.
	RevokeWithin time.Duration

	// Now and Sleep are the clock of that wait; nil is the real one.
	Now   func() time.Time
	Sleep func(time.Duration)
}

// Group is a device, or a part of it, that tenants share. Its methods and those
// of its tenants are safe for concurrent use.
type Group struct {
	dev      driver.Driver
	options  Options
	physical driver.PhysicalMapper // nil without Hold
	now      func() time.Time
	sleep    func(time.Duration)

	ledger        ledger
	releaseFailed atomic.Pointer[error] // see noteRelease

	mu      sync.Mutex
	tenants []*Tenant
}

// Unlimited is the limit of a group that reserves whatever its device has.
const Unlimited = 1 << 62

// New makes a group without tenants that reserves at most limit bytes of a device.
func New(d driver.Driver, limit uint64, o Options) (*Group, error) {
	switch {
	case d == nil:
		return nil, errors.New("tenant: a group needs a driver")
	case limit == 0:
		return nil, errors.New("tenant: a limit of 0 leaves nothing to share; give the bytes that the tenants may have together")
	}
	g := &Group{dev: d, options: o, now: o.Now, sleep: o.Sleep}
	g.ledger.limit = limit
	if g.now == nil {
		g.now = time.Now
	}
	if g.sleep == nil {
		g.sleep = time.Sleep
	}
	g.options.RevokeWithin = cmp.Or(o.RevokeWithin, 100*time.Millisecond)
	if o.Hold {
		var ok bool
		if g.physical, ok = d.(driver.PhysicalMapper); !ok {
			return nil, errors.New("tenant: Hold needs a driver that makes physical memory, such as driver/cuda; leave it out")
		}
	}
	return g, nil
}

// Terms are what a tenant is given.
type Terms struct {
	Guarantee uint64 // bytes that it gets whatever the others do
	Ceiling   uint64 // bytes that it never exceeds; 0 is none
	// Priority decides whose cache and whose revocable blocks go first: the lowest.
	Priority int
	// Driver has the tenant's memory instead of the group's driver. It is for
	// simulations in which each tenant has addresses of its own.
	Driver driver.Driver
}

func (t Terms) check(name string, limit uint64) error {
	switch {
	case t.Ceiling > 0 && t.Ceiling < t.Guarantee:
		return fmt.Errorf("tenant %s: the ceiling of %d bytes is below the guarantee of %d", name, t.Ceiling, t.Guarantee)
	case t.Guarantee > limit:
		return &GuaranteeError{Tenant: name, Guarantee: t.Guarantee, Limit: limit, Short: t.Guarantee - limit}
	}
	return nil
}

// Add makes a tenant. Its allocator uses expandable segments unless an option says
// otherwise; a hook of alloc.WithOOMRetry has no effect. A guarantee for which the
// others leave no room is a [*GuaranteeError].
func (g *Group) Add(name string, terms Terms, opts ...alloc.Option) (*Tenant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == "" {
		return nil, errors.New("tenant: a tenant needs a name")
	}
	if g.find(name) != nil {
		return nil, fmt.Errorf("tenant: there is a tenant %s already", name)
	}
	if err := terms.check(name, g.limit()); err != nil {
		return nil, err
	}
	dev := g.dev
	if terms.Driver != nil {
		dev = terms.Driver
	}
	t := &Tenant{group: g, name: name, dev: dev, priority: terms.Priority}
	g.ledger.open(&t.account)
	if err := g.setTerms(t, terms); err != nil {
		g.ledger.close(&t.account)
		return nil, err
	}
	s := settings.Default()
	s.ExpandableSegments = true
	opts = append([]alloc.Option{alloc.WithSettings(s)}, opts...)
	opts = append(opts, alloc.WithOOMRetry(retries, t.makeRoom))
	t.engine = alloc.New(&adaptor{Passing: driver.Passing{Driver: dev}, t: t}, opts...)
	g.tenants = append(g.tenants, t)
	return t, nil
}

// retries bounds how often a request begins again after others gave something
// back. Each time somebody else may have been faster.
const retries = 64

// setTerms puts terms into force, for callers that hold the lock. If there is no
// room, the others' caches are released first.
func (g *Group) setTerms(t *Tenant, terms Terms) error {
	guarantee, ceiling := t.account.guarantee, t.account.ceiling
	for {
		short := g.ledger.setTerms(&t.account, terms.Guarantee, terms.Ceiling)
		if short == 0 {
			break
		}
		if g.trim(t, byPriority(g.tenants), short) == 0 {
			return &GuaranteeError{Tenant: t.name, Guarantee: terms.Guarantee, Limit: g.limit(), Short: short, Holders: g.holders(t)}
		}
	}
	if g.physical == nil {
		return nil
	}
	if t.hold == nil {
		t.hold = newHold(g.physical, t)
	}
	if err := t.hold.resize(); err != nil {
		g.ledger.setTerms(&t.account, guarantee, ceiling)
		t.hold.fill()
		return err
	}
	return nil
}

func (g *Group) find(name string) *Tenant {
	i := slices.IndexFunc(g.tenants, func(t *Tenant) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return g.tenants[i]
}

func (g *Group) limit() uint64 {
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	return g.ledger.limit
}

// Driver returns the group's driver.
func (g *Group) Driver() driver.Driver { return g.dev }

// SetLimit changes how much the group may reserve. Less than what is reserved or
// guaranteed is refused.
func (g *Group) SetLimit(limit uint64) error {
	l := &g.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if least := max(l.committed, l.firm+l.lent); limit < least {
		return fmt.Errorf("tenant: a limit of %s is below the %s that are reserved or guaranteed", units.Size(limit), units.Size(least))
	}
	l.limit = limit
	return nil
}

// Tenant returns the tenant of a name, or nil.
func (g *Group) Tenant(name string) *Tenant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.find(name)
}

// list returns the tenants, lowest priority first, and among equals the youngest first.
func (g *Group) list() []*Tenant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return byPriority(g.tenants)
}

func byPriority(tenants []*Tenant) []*Tenant {
	out := slices.Clone(tenants)
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b *Tenant) int { return cmp.Compare(a.priority, b.priority) })
	return out
}

// Close closes all tenants. Those that have memory in use stay, and the error
// names them.
func (g *Group) Close() error {
	var err error
	for _, t := range g.list() {
		err = errors.Join(err, t.Close())
	}
	return err
}

// open adds an account.
func (l *ledger) open(a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts = append(l.accounts, a)
}

// close removes an account. It reports how many bytes it still has, and keeps it
// if there are any.
func (l *ledger) close(a *account) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.reserved+a.borrowed > 0 {
		return a.reserved + a.borrowed
	}
	a.closed = true
	l.committed -= a.committed()
	a.guarantee, a.claim = 0, 0
	l.accounts = slices.DeleteFunc(l.accounts, func(o *account) bool { return o == a })
	return 0
}
