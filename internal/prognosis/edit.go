package prognosis

// Edit is a change of the program: what it would allocate otherwise. Positions
// are those of allocations of the recording, see [Prognosis.Allocations].
type Edit struct {
	// Size gives another size, 0 for no allocation; nil changes none.
	Size func(position int, size uint64) uint64
	// Drop reports whether an allocation is freed when its step ends, at the
	// latest; nil for none.
	Drop func(position int) bool
}

func (e *Edit) size(position int, size uint64) uint64 {
	if e.Size == nil {
		return size
	}
	return e.Size(position, size)
}

func (e *Edit) drops(position int) bool { return e.Drop != nil && e.Drop(position) }
