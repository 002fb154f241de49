package tier

import (
	"fmt"

	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// adaptor is the driver of one space's allocator. It maps handles that the store
// knows and passes everything else on.
type adaptor struct {
	driver.Passing
	s *Space
}

// charge returns what a plain segment takes of a device.
func charge(size uint64) uint64 { return (size + unit - 1) &^ (unit - 1) }

func (a *adaptor) Malloc(size, stream uint64) (uint64, error) {
	l := &a.s.store.ledger
	if err := l.bookDevice(a.s, charge(size)); err != nil {
		return 0, err
	}
	addr, err := a.Driver.Malloc(size, stream)
	if err != nil {
		l.unbookDevice(a.s, charge(size))
	}
	return addr, err
}

func (a *adaptor) Free(addr, size uint64) error {
	err := a.Driver.Free(addr, size)
	if err == nil {
		a.s.store.ledger.unbookDevice(a.s, charge(size))
	}
	return err
}

func (a *adaptor) Map(addr, size, granule uint64) error {
	return a.s.store.mapRange(a.s, addr, size, granule, alloc.OnDevice)
}

// Unmap takes away what lies behind a range, of which the engine knows that nobody
// uses it.
func (a *adaptor) Unmap(addr, size, granule, stream uint64) error {
	s := a.s.store
	pages := s.ledger.pagesIn(addr, size, granule)
	if uint64(len(pages))*granule != size {
		return fmt.Errorf("tier: unmap of %d bytes at %#x, where %d handles are known", size, addr, len(pages))
	}
	if !a.s.quiet { // else the whole device was waited for; the stream may be gone by now
		if err := s.dev.Synchronize(stream); err != nil {
			return err
		}
	}
	if whole(pages) { // as always, unless mappings have failed before
		if err := s.dev.UnmapPhysical(addr, size); err != nil {
			return err
		}
		s.forget(pages)
		return nil
	}
	// A page that was taken away before another one failed is known as broken, and the
	// next Unmap finds it so.
	for _, p := range pages {
		if !p.mapped {
			continue
		}
		if err := s.dev.UnmapPhysical(p.addr, p.size); err != nil {
			return err
		}
		s.ledger.set(p, func() { p.mapped, p.open = false, false })
	}
	s.forget(pages)
	return nil
}

func whole(pages []*page) bool {
	for _, p := range pages {
		if !p.mapped || !p.open {
			return false
		}
	}
	return true
}

// set changes pages.
func (l *ledger) set(p *page, change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.note(p)
}

// Unreserve gives addresses back, with nothing left of a Map that failed.
func (a *adaptor) Unreserve(addr, size uint64) error {
	s := a.s.store
	var strays []*page
	s.ledger.mu.Lock()
	for p := range s.ledger.broken {
		if p.stray && p.addr >= addr && p.addr-addr < size {
			strays = append(strays, p)
		}
	}
	s.ledger.mu.Unlock()
	for _, p := range strays {
		if err := s.takeAway(p); err != nil {
			return err
		}
	}
	return a.Driver.Unreserve(addr, size)
}
