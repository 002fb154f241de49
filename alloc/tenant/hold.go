package tenant

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/ashlar-mem/ashlar/driver"
	"github.com/ashlar-mem/ashlar/internal/units"
)

// hold is the physical memory of one tenant: what is mapped, and what is kept
// for the rest of its guarantee.
type hold struct {
	dev driver.PhysicalMapper
	t   *Tenant

	mu     sync.Mutex
	kept   map[uint64][]driver.Physical // by size, mapped nowhere
	bytes  uint64                       // of kept
	mapped map[uint64]driver.Physical   // by address
}

func newHold(dev driver.PhysicalMapper, t *Tenant) *hold {
	return &hold{dev: dev, t: t, kept: map[uint64][]driver.Physical{}, mapped: map[uint64]driver.Physical{}}
}

// due returns how much is to be kept.
func (h *hold) due() uint64 {
	l := &h.t.group.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &h.t.account
	return (a.guarantee - min(a.guarantee, a.reserved)) &^ (page - 1)
}

// largest is the size of most handles that are kept: the granule of the large pool.
const largest uint64 = 20 << 20

// resize keeps as much as is due, or says that the device has not got it.
func (h *hold) resize() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.adjust()
	if errors.Is(err, driver.ErrOutOfMemory) {
		return fmt.Errorf("tenant %s: the device has not got the memory that is to be held, %s are missing: %w", h.t.name, units.Size(h.due()-h.bytes), err)
	}
	return err
}

// fill keeps what is due as far as the device has it.
func (h *hold) fill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.adjust()
}

func (h *hold) adjust() error {
	due := h.due()
	if err := h.releaseDown(due); err != nil {
		return err
	}
	for _, size := range []uint64{largest, page} {
		for h.bytes+size <= due {
			if err := h.create(size, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// create adds n handles to what is kept.
func (h *hold) create(size uint64, n int) error {
	handles := make([]driver.Physical, n)
	if err := h.dev.CreatePhysical(size, handles); err != nil {
		return err
	}
	h.kept[size] = append(h.kept[size], handles...)
	h.bytes += size * uint64(n)
	return nil
}

// releaseDown gives handles back until no more than most bytes are kept.
func (h *hold) releaseDown(most uint64) error {
	for _, size := range slices.Backward(slices.Sorted(maps.Keys(h.kept))) {
		for len(h.kept[size]) > 0 && h.bytes >= most+size {
			if err := h.releaseOne(size); err != nil {
				return err
			}
		}
	}
	if h.bytes <= most {
		return nil
	}
	// Every handle is larger than what is too much: small ones take the place of
	// one of them.
	size := uint64(math.MaxUint64)
	for s, of := range h.kept {
		if len(of) > 0 {
			size = min(size, s)
		}
	}
	n := int((size - (h.bytes - most)) / page)
	err := h.create(page, n)
	if released := h.releaseOne(size); released != nil || !errors.Is(err, driver.ErrOutOfMemory) {
		return errors.Join(err, released)
	}
	return h.create(page, n)
}

func (h *hold) releaseOne(size uint64) error {
	last := len(h.kept[size]) - 1
	if err := h.dev.ReleasePhysical(h.kept[size][last:]); err != nil {
		return err
	}
	h.kept[size] = h.kept[size][:last]
	h.bytes -= size
	return nil
}

// mapRange maps kept handles, and new ones where there are none of the size. The
// ledger has booked the range already.
func (h *hold) mapRange(addr, size, granule uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := int(size / granule)
	if lacking := n - len(h.kept[granule]); lacking > 0 {
		if err := h.exchange(granule, lacking); err != nil {
			return err
		}
	}
	at := len(h.kept[granule]) - n
	handles := slices.Clone(h.kept[granule][at:])
	if err := h.dev.MapPhysical(addr, granule, handles); err != nil {
		return err
	}
	if err := h.dev.SetAccess(addr, size); err != nil {
		return errors.Join(err, h.dev.UnmapPhysical(addr, size))
	}
	h.kept[granule] = h.kept[granule][:at]
	h.bytes -= size
	for i, p := range handles {
		h.mapped[addr+uint64(i)*granule] = p
	}
	_ = h.releaseDown(h.due()) // what cannot be released now is at the next turn
	return nil
}

// exchange makes n handles of a size. If the device has no room for them beside
// what is kept, it gives as much of that back first; until they are made another
// process may take it.
func (h *hold) exchange(size uint64, n int) error {
	err := h.create(size, n)
	if !errors.Is(err, driver.ErrOutOfMemory) {
		return err
	}
	need := size * uint64(n)
	if err := h.releaseDown(h.bytes - min(h.bytes, need)); err != nil {
		return err
	}
	return h.create(size, n)
}

// unmapRange unmaps handles after waiting for the stream and keeps those that
// are due. booked books the range back.
func (h *hold) unmapRange(addr, size, granule, stream uint64, booked func()) error {
	if err := h.dev.Synchronize(stream); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.dev.UnmapPhysical(addr, size); err != nil {
		return err
	}
	for at := addr; at < addr+size; at += granule {
		h.kept[granule] = append(h.kept[granule], h.mapped[at])
		delete(h.mapped, at)
	}
	h.bytes += size
	booked()
	_ = h.releaseDown(h.due())
	return nil
}

// malloc gets a plain segment, for which as much of what is kept is given back. Until the driver has
// made it another process may take the memory.
func (h *hold) malloc(size, stream uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.releaseDown(h.due()); err != nil {
		return 0, err
	}
	return h.t.dev.Malloc(size, stream)
}
