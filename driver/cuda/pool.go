package cuda

import (
	"fmt"
	"unsafe"
)

// PoolStats are the figures of the device's default pool for stream-ordered
// allocation, in bytes. The highs count from the last ResetPoolHighs.
type PoolStats struct {
	ReleaseThreshold uint64 // reserved memory above it goes back at the next synchronisation
	Used, UsedHigh   uint64 // handed out
	Reserved         uint64 // got from the device
	ReservedHigh     uint64
}

// PoolReuse says how the default pool may give memory that was freed on one stream
// to another. All three are on at first.
type PoolReuse struct {
	FollowEvents         bool // where events show that the free came before
	Opportunistic        bool // where the free is seen to be done
	InternalDependencies bool // by making the stream wait for the free
}

// Attributes of a pool.
const (
	poolFollowEvents     = 1
	poolOpportunistic    = 2
	poolInternal         = 3
	poolReleaseThreshold = 4
	poolReserved         = 5
	poolReservedHigh     = 6
	poolUsed             = 7
	poolUsedHigh         = 8
)

// MallocAsync gets memory from the device's default pool in the order of
// stream: work queued on it from now on may use the memory.
func (d *Device) MallocAsync(size, stream uint64) (addr uint64, err error) {
	c, err := d.enterFor(stream)
	if err != nil {
		return 0, err
	}
	defer c.leave()
	pool, err := d.defaultPool(c)
	if err != nil {
		return 0, err
	}
	if err := c.do(symMemAllocFromPoolAsync, c.out(unsafe.Pointer(&c.a)), uintptr(size), pool, uintptr(stream)); err != nil {
		return 0, err
	}
	return c.a, nil
}

// FreeAsync gives memory of MallocAsync back once stream has come so far.
func (d *Device) FreeAsync(addr, stream uint64) error {
	c, err := d.enter()
	if err != nil {
		return err
	}
	defer c.leave()
	return c.do(symMemFreeAsync, uintptr(addr), uintptr(stream))
}

// PoolStats reads the figures of the default pool.
func (d *Device) PoolStats() (PoolStats, error) {
	var s PoolStats
	err := d.withPool(func(c *call, pool uintptr) error {
		for _, a := range []struct {
			attr uintptr
			to   *uint64
		}{
			{poolReleaseThreshold, &s.ReleaseThreshold},
			{poolUsed, &s.Used},
			{poolUsedHigh, &s.UsedHigh},
			{poolReserved, &s.Reserved},
			{poolReservedHigh, &s.ReservedHigh},
		} {
			if err := c.do(symMemPoolGetAttribute, pool, a.attr, c.out(unsafe.Pointer(&c.a))); err != nil {
				return err
			}
			*a.to = c.a
		}
		return nil
	})
	return s, err
}

// withPool begins a call about the default pool.
func (d *Device) withPool(do func(c *call, pool uintptr) error) error {
	c, err := d.enterRelaxed()
	if err != nil {
		return err
	}
	defer c.leave()
	pool, err := d.defaultPool(c)
	if err != nil {
		return err
	}
	return do(c, pool)
}

// SetReleaseThreshold lets the default pool keep so much memory that nobody
// uses when the device is synchronised. It is 0 at first.
func (d *Device) SetReleaseThreshold(bytes uint64) error {
	return d.setPool(poolReleaseThreshold, bytes)
}

// attributes pairs attributes with fields.
func (r *PoolReuse) attributes() []reuseAttribute {
	return []reuseAttribute{{poolFollowEvents, &r.FollowEvents}, {poolOpportunistic, &r.Opportunistic}, {poolInternal, &r.InternalDependencies}}
}

type reuseAttribute struct {
	attr uintptr
	on   *bool
}

// PoolReuse reads how the default pool reuses memory across streams.
func (d *Device) PoolReuse() (PoolReuse, error) {
	var r PoolReuse
	err := d.withPool(func(c *call, pool uintptr) error {
		for _, a := range r.attributes() {
			c.i = 0
			if err := c.do(symMemPoolGetAttribute, pool, a.attr, c.out(unsafe.Pointer(&c.i))); err != nil {
				return err
			}
			*a.on = c.i != 0
		}
		return nil
	})
	return r, err
}

// SetPoolReuse sets how the default pool reuses memory across streams.
func (d *Device) SetPoolReuse(r PoolReuse) error {
	for _, a := range r.attributes() {
		value := uint64(0)
		if *a.on {
			value = 1
		}
		if err := d.setPool(a.attr, value); err != nil {
			return err
		}
	}
	return nil
}

// ResetPoolHighs lets the highs of the default pool begin anew.
func (d *Device) ResetPoolHighs() error {
	if err := d.setPool(poolReservedHigh, 0); err != nil {
		return err
	}
	return d.setPool(poolUsedHigh, 0)
}

// TrimPool gives memory of the default pool that nobody uses back to the
// device, but keeps at least so many bytes.
func (d *Device) TrimPool(keep uint64) error {
	return d.withPool(func(c *call, pool uintptr) error { return c.do(symMemPoolTrimTo, pool, uintptr(keep)) })
}

func (d *Device) setPool(attr uintptr, value uint64) error {
	return d.withPool(func(c *call, pool uintptr) error {
		c.a = value
		return c.do(symMemPoolSetAttribute, pool, attr, c.out(unsafe.Pointer(&c.a)))
	})
}

func (d *Device) defaultPool(c *call) (uintptr, error) {
	if !d.info.MemoryPools {
		return 0, fmt.Errorf("GPU %d (%s) has no stream-ordered allocation", d.info.Index, d.info.Name)
	}
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	if d.pool.handle == 0 {
		if err := c.do(symDeviceGetDefaultMemPool, c.out(unsafe.Pointer(&c.a)), uintptr(d.handle)); err != nil {
			return 0, err
		}
		d.pool.handle = uintptr(c.a)
	}
	return d.pool.handle, nil
}
