package tenant

import (
	"errors"

	"github.com/ashlar-mem/ashlar/driver"
)

// adaptor is the driver of one tenant's allocator. It asks the ledger before it
// takes memory and passes everything on. It has all optional interfaces.
type adaptor struct {
	driver.Passing
	t       *Tenant
	lending bool // the memory is for revocable blocks
}

var (
	_ driver.Adopter = (*adaptor)(nil)
	_ driver.Booker  = (*adaptor)(nil)
)

// take gets d bytes from the ledger and then from the driver.
func (a *adaptor) take(d uint64, get func() error) error {
	l := &a.t.group.ledger
	var no *refusal
	if a.lending {
		no = l.borrow(&a.t.account, d, a.t.group.now())
	} else {
		no = l.grant(&a.t.account, d)
	}
	if no != nil {
		return no
	}
	err := get()
	switch {
	case err == nil:
	case a.lending:
		l.giveBack(&a.t.account, d)
	default:
		l.release(&a.t.account, d)
		if a.t.hold != nil {
			a.t.hold.fill()
		}
	}
	if errors.Is(err, driver.ErrOutOfMemory) {
		return &refusal{reason: DeviceFull, size: d, firm: l.firmOf(&a.t.account), short: d, revocable: a.lending, device: err}
	}
	return err
}

// give books d bytes back that the driver has taken.
func (a *adaptor) give(d uint64, err error) error {
	switch {
	case err != nil:
	case a.lending:
		a.t.group.ledger.giveBack(&a.t.account, d)
	default:
		a.t.group.ledger.release(&a.t.account, d)
	}
	return err
}

func (a *adaptor) Malloc(size, stream uint64) (addr uint64, err error) {
	err = a.take(charge(size), func() (err error) {
		if h := a.held(); h != nil {
			addr, err = h.malloc(size, stream)
		} else {
			addr, err = a.Driver.Malloc(size, stream)
		}
		return err
	})
	return addr, err
}

func (a *adaptor) Free(addr, size uint64) error {
	err := a.give(charge(size), a.Driver.Free(addr, size))
	if h := a.held(); h != nil && err == nil {
		h.fill() // what the device has; others may have been faster
	}
	return err
}

func (a *adaptor) Map(addr, size, granule uint64) error {
	return a.take(size, func() error {
		if h := a.held(); h != nil {
			return h.mapRange(addr, size, granule)
		}
		return a.Driver.Map(addr, size, granule)
	})
}

func (a *adaptor) Unmap(addr, size, granule, stream uint64) error {
	if h := a.held(); h != nil {
		return h.unmapRange(addr, size, granule, stream, func() { _ = a.give(size, nil) })
	}
	return a.give(size, a.Driver.Unmap(addr, size, granule, stream))
}

// held returns the memory that is held for the tenant, nil if none is.
func (a *adaptor) held() *hold {
	if a.lending {
		return nil
	}
	return a.t.hold
}

// Book books memory that left the device, or came back to it, whatever the limit says.
func (a *adaptor) Book(bytes int64) {
	if bytes < 0 {
		_ = a.give(uint64(-bytes), nil)
	} else {
		a.t.group.ledger.adopt(&a.t.account, uint64(bytes))
	}
}

// Claim books memory that is to come back to the device.
func (a *adaptor) Claim(bytes uint64) error {
	if no := a.t.group.ledger.grant(&a.t.account, bytes); no != nil {
		return no
	}
	return nil
}

func (a *adaptor) Adopt(addr, size uint64) error {
	return a.adopt(charge(size), func(d driver.Adopter) error { return d.Adopt(addr, size) })
}

func (a *adaptor) AdoptRange(addr, size uint64) error {
	return a.adopt(0, func(d driver.Adopter) error { return d.AdoptRange(addr, size) })
}

func (a *adaptor) AdoptMapped(addr, size, granule uint64) error {
	return a.adopt(size, func(d driver.Adopter) error { return d.AdoptMapped(addr, size, granule) })
}

// adopt books memory that is there already, whatever the limit says.
func (a *adaptor) adopt(d uint64, pass func(driver.Adopter) error) error {
	if ad, ok := a.Driver.(driver.Adopter); ok {
		if err := pass(ad); err != nil {
			return err
		}
	}
	a.t.group.ledger.adopt(&a.t.account, d)
	return nil
}
