package policies

import (
	"github.com/ashlar-mem/ashlar/alloc"
	"github.com/ashlar-mem/ashlar/driver"
)

// counter is a device for placement problems, which are about bytes: it has
// memory in any unit, and none behind it.
type counter struct {
	driver.Driver // has no events; nothing asks for them
	next          uint64
}

func (c *counter) Reserve(size, _ uint64) (uint64, error) {
	c.next += size
	return c.next - size, nil
}

func (c *counter) Malloc(size, stream uint64) (uint64, error) {
	return c.Reserve((size+alloc.SegmentUnit-1)/alloc.SegmentUnit*alloc.SegmentUnit, stream)
}

func (c *counter) Free(_, _ uint64) error        { return nil }
func (c *counter) Unreserve(_, _ uint64) error   { return nil }
func (c *counter) Map(_, _, _ uint64) error      { return nil }
func (c *counter) Unmap(_, _, _, _ uint64) error { return nil }
