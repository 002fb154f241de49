package alloc

import "fmt"

// InvalidPointerError is returned by Free for an address that is not allocated.
type InvalidPointerError struct {
	Addr uint64
}

func (e *InvalidPointerError) Error() string {
	return fmt.Sprintf("invalid device pointer: %#x", e.Addr)
}

// PoolError is returned when a private pool cannot do what was asked of it.
type PoolError struct {
	ID      PoolID
	Problem string
}

func (e *PoolError) Error() string { return fmt.Sprintf("pool %v %s", e.ID, e.Problem) }

// RouteActiveError is returned for what cannot be done while a MemPool or a
// capture receives allocations.
type RouteActiveError struct {
	Doing string
}

func (e *RouteActiveError) Error() string {
	return e.Doing + ": not possible while a memory pool or a graph capture receives allocations; end it first"
}

// UndefinedError marks the point after which PyTorch's own behaviour is undefined,
// so that no replay can be compared with it.
type UndefinedError struct {
	Pool   PoolID
	Reason string
}

func (e *UndefinedError) Error() string {
	return "PyTorch is undefined from here: " + e.Reason
}

func (a *Allocator) setUndefined(id PoolID, reason string) {
	if a.undefined == nil {
		a.undefined = &UndefinedError{Pool: id, Reason: reason}
	}
}
