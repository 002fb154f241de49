package detect

import (
	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// Memory is how much memory a process has and where. The five shares at the
// end add up to RSS.
type Memory struct {
	RSSBytes       uint64 `json:"rss_bytes"`
	PSSBytes       uint64 `json:"pss_bytes"`
	AnonymousBytes uint64 `json:"anonymous_bytes"`
	LazyFreeBytes  uint64 `json:"lazy_free_bytes"`
	HugePageBytes  uint64 `json:"huge_page_bytes"`
	SwapBytes      uint64 `json:"swap_bytes"`

	HeapBytes  uint64 `json:"heap_bytes"`  // grown by brk
	MmapBytes  uint64 `json:"mmap_bytes"`  // anonymous, from mmap, with the arenas
	StackBytes uint64 `json:"stack_bytes"` // of the first thread
	FileBytes  uint64 `json:"file_bytes"`  // of files: code, and data that is mapped
	SharedMem  uint64 `json:"shared_memory_bytes"`

	// Arenas are those of glibc, with the one on the heap; nil if malloc is
	// another or its memory cannot be read.
	Arenas     *int    `json:"arenas"`
	ArenaBytes *uint64 `json:"arena_bytes"` // the part of MmapBytes that they have
}

// newMemory sums up mappings.
func newMemory(all []proc.Usage) Memory {
	sum := proc.Sum(all)
	m := Memory{
		RSSBytes: sum.RSSBytes, PSSBytes: sum.PSSBytes, AnonymousBytes: sum.AnonymousBytes,
		LazyFreeBytes: sum.LazyFreeBytes, HugePageBytes: sum.HugePageBytes, SwapBytes: sum.SwapBytes,
	}
	for i := range all {
		u := &all[i]
		switch {
		case u.Path == proc.Heap:
			m.HeapBytes += u.RSSBytes
		case u.Path == proc.Stack:
			m.StackBytes += u.RSSBytes
		case u.Anonymous():
			m.MmapBytes += u.RSSBytes
		case u.Shared() && !u.OfDisk():
			m.SharedMem += u.RSSBytes
		default:
			m.FileBytes += u.RSSBytes
		}
	}
	return m
}

// An arena of glibc, other than the first, lies in heaps: stretches of 64 MiB
// at a multiple of 64 MiB, of which the beginning is in use. A heap begins with
//
//	struct heap_info { arena *arena; heap_info *previous; size_t size; ... }
//
// and its first one holds the arena itself.
const arenaHeap = 64 << 20

// arenas counts the arenas of glibc and the memory of their heaps; that of
// other memory which the kernel has made one mapping with them is counted too.
// It is nil where the memory of the process may not be read: what is no heap may
// lie at such addresses as well.
func (t *target) arenas(all []proc.Usage) (count *int, bytes *uint64) {
	if t.mem == nil {
		return nil, nil
	}
	heaps := map[uint64]*proc.Usage{}
	for i := range all {
		u := &all[i]
		// The kernel makes one mapping of neighbours, so a mapping may hold
		// several heaps: full ones have no gap after them.
		if !u.Anonymous() || !u.Writable() || u.Path == proc.Heap {
			continue
		}
		for at := (u.Start + arenaHeap - 1) &^ (arenaHeap - 1); at < u.End; at += arenaHeap {
			heaps[at] = u
		}
	}
	found := map[uint64]bool{}
	inUse := map[*proc.Usage]bool{}
	for at, u := range heaps {
		arena, err := t.mem.Word(at)
		if err != nil {
			continue
		}
		previous, err := t.mem.Word(at + 8)
		if err != nil {
			continue
		}
		size, err := t.mem.Word(at + 16)
		if err != nil {
			continue
		}
		_, holder := heaps[arena&^(arenaHeap-1)]
		_, chained := heaps[previous]
		if !holder || arena%arenaHeap > 4096 || previous != 0 && !chained || size == 0 || size > arenaHeap || size%4096 != 0 {
			continue
		}
		found[arena] = true
		inUse[u] = true
	}
	n, sum := len(found)+1, uint64(0)
	for u := range inUse {
		sum += u.RSSBytes
	}
	return &n, &sum
}
