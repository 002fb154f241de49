package hf

// Beside is memory that the allocator does not see.
type Beside struct {
	What  string
	Where string // managed or host
	Bytes int64
}

// The places of memory beside the allocator's.
const (
	Managed = "managed"
	Host    = "host"
)

// besides adds to memory of a kind.
func (r *run) besides(what, where string, bytes int64) {
	for i := range r.beside {
		if b := &r.beside[i]; b.What == what && b.Where == where {
			b.Bytes += bytes
			return
		}
	}
	r.beside = append(r.beside, Beside{what, where, bytes})
}
