package tenant

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// Share is an amount of memory that a tenant has.
type Share struct {
	Tenant string
	Bytes  uint64
}

// OutOfMemoryError is a request that could not be served. It wraps the engine's
// error, whose numbers its text begins with.
type OutOfMemoryError struct {
	*alloc.OutOfMemoryError
	Tenant    string
	Reason    Reason
	Refused   uint64 // bytes that were refused
	Guarantee uint64
	Ceiling   uint64 // 0: none
	Firm      uint64 // bytes reserved by the tenant when it was refused, revocable blocks apart
	Limit     uint64 // of the group; Unlimited: none
	// Lent is what tenants hold as revocable blocks; NotReturned are those of them
	// that were asked to give back and did not.
	Lent, NotReturned []Share
	// Above are the other tenants with more than their guarantee, and how much more:
	// who could be asked.
	Above []Share
	// ReleaseError is why another tenant's cache could not be released, if one could not.
	ReleaseError error

	revocable bool // the request was for a revocable block
}

// Unwrap returns the engine's error.
func (e *OutOfMemoryError) Unwrap() error { return e.OutOfMemoryError }

// Guaranteed reports whether what was refused fits into the guarantee: the device
// lacks what it should have, or revocable blocks were not given back in time.
// Revocable blocks are not guaranteed.
func (e *OutOfMemoryError) Guaranteed() bool {
	return !e.revocable && (e.Reason == DeviceFull || e.Reason == LentOut || e.Reason == AboveLimit) && e.Firm+e.Refused <= e.Guarantee
}

// Error returns the numbers of PyTorch's message and what the tenant's part in it is.
func (e *OutOfMemoryError) Error() string { return e.Numbers() + " " + e.Situation() }

// Situation says what the tenant's part in the failure is.
func (e *OutOfMemoryError) Situation() string {
	var m strings.Builder
	fmt.Fprintf(&m, "Tenant %s has %s reserved, %s guaranteed", e.Tenant, units.Size(e.Firm), units.Size(e.Guarantee))
	if e.Ceiling > 0 {
		fmt.Fprintf(&m, " and at most %s", units.Size(e.Ceiling))
	}
	switch e.Reason {
	case AboveCeiling:
		fmt.Fprintf(&m, "; %s more would exceed its ceiling.", units.Size(e.Refused))
	case AboveLimit:
		fmt.Fprintf(&m, "; for %s more the other tenants leave too little of the group's %s.", units.Size(e.Refused), units.Size(e.Limit))
	case LentOut:
		fmt.Fprintf(&m, "; the %s wanted are lent and were not given back in time.", units.Size(e.Refused))
	case DeviceFull:
		if e.Limit == Unlimited {
			fmt.Fprintf(&m, "; %s more were refused: %v.", units.Size(e.Refused), e.Refusal)
			break
		}
		fmt.Fprintf(&m, "; the group of %s allows %s more, but the device has not got them: something outside the group has taken them.", units.Size(e.Limit), units.Size(e.Refused))
	case TenantClosed:
		m.WriteString("; it is closed.")
	default:
		m.WriteByte('.')
	}
	list := func(what string, of []Share) {
		if len(of) > 0 {
			m.WriteString(what + shares(of) + ".")
		}
	}
	list(" Lent: ", e.Lent)
	list(" Not given back: ", e.NotReturned)
	if e.Reason == AboveLimit || e.Reason == DeviceFull {
		list(" Above their guarantee: ", e.Above)
	}
	if e.ReleaseError != nil {
		fmt.Fprintf(&m, " A cache could not be released: %v.", e.ReleaseError)
	}
	return m.String()
}

func shares(of []Share) string {
	var parts []string
	for _, s := range of {
		parts = append(parts, s.Tenant+" "+units.Size(s.Bytes))
	}
	return strings.Join(parts, ", ")
}

// Describe turns an out-of-memory error of the tenant's allocator into an
// [*OutOfMemoryError], with the state of the group as it is now. It returns other
// errors as they are.
func (t *Tenant) Describe(err error) error {
	var oom *alloc.OutOfMemoryError
	var done *OutOfMemoryError
	if !errors.As(err, &oom) || errors.As(err, &done) {
		return err
	}
	g := t.group
	e := &OutOfMemoryError{OutOfMemoryError: oom, Tenant: t.name, Limit: g.limit()}
	if failed := g.releaseFailed.Load(); failed != nil {
		e.ReleaseError = *failed
	}
	for _, o := range g.list() {
		late := o.late()
		g.ledger.mu.Lock()
		a := &o.account
		if a.borrowed > 0 {
			e.Lent = append(e.Lent, Share{o.name, a.borrowed})
		}
		if late > 0 {
			e.NotReturned = append(e.NotReturned, Share{o.name, late})
		}
		if o != t && a.reserved > a.guarantee {
			e.Above = append(e.Above, Share{o.name, a.reserved - a.guarantee})
		}
		g.ledger.mu.Unlock()
	}
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	a := &t.account
	e.Guarantee, e.Ceiling, e.Firm = a.guarantee, a.ceiling, a.reserved
	var no *refusal
	if errors.As(oom.Refusal, &no) {
		e.Reason, e.Refused, e.Firm, e.revocable = no.reason, no.size, no.firm, no.revocable
	}
	return e
}

// late returns the bytes of revocable blocks that were asked for and are in use.
func (t *Tenant) late() (bytes uint64) {
	t.lending.Lock()
	defer t.lending.Unlock()
	for _, l := range t.lending.list {
		if l.revoked {
			bytes += l.size
		}
	}
	return bytes
}

// GuaranteeError is a guarantee for which there is no room.
type GuaranteeError struct {
	Tenant    string
	Guarantee uint64
	Limit     uint64
	Short     uint64  // bytes that are missing
	Holders   []Share // who has, or is guaranteed, the rest
}

func (e *GuaranteeError) Error() string {
	text := fmt.Sprintf("tenant %s: %s cannot be guaranteed now: %s of the limit of %s are missing", e.Tenant, units.Size(e.Guarantee), units.Size(e.Short), units.Size(e.Limit))
	if len(e.Holders) > 0 {
		text += "; held by or guaranteed to " + shares(e.Holders)
	}
	return text
}

// holders returns what is held by or guaranteed to the others, for callers that
// hold the group's lock.
func (g *Group) holders(t *Tenant) []Share {
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	var out []Share
	for _, o := range g.tenants {
		if n := o.account.committed(); o != t && n > 0 {
			out = append(out, Share{o.name, n})
		}
	}
	return out
}

// InUseError says that a tenant cannot be closed.
type InUseError struct {
	Tenant string
	Bytes  uint64 // reserved, for blocks or pools in use
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("tenant %s has %s in use: free its blocks and close its pools first", e.Tenant, units.Size(e.Bytes))
}
