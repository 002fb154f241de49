package gpu

import (
	"fmt"
	"time"
)

// Groups of rows.
const (
	GroupDriver     = "driver"     // cuMemAlloc and cuMemFree
	GroupAsync      = "async"      // cuMemAllocAsync and cuMemFreeAsync
	GroupHandle     = "handle"     // virtual memory, one handle
	GroupRange      = "range"      // virtual memory, many handles and one call to set access
	GroupEngine     = "engine"     // malloc and free of package alloc from its cache
	GroupContention = "contention" // the same from several goroutines
	GroupGrowth     = "growth"     // malloc of package alloc that needs new memory
	GroupCopy       = "copy"       // copies of one buffer
	GroupManaged    = "managed"    // there and back: copies against managed memory
	GroupThreads    = "threads"    // the driver and its pool from several threads
	GroupStreams    = "streams"    // the driver's pool with several streams
	GroupAccess     = "access"     // a kernel that reads memory in some order
	GroupFault      = "fault"      // single faults of managed memory
	GroupTier       = "tier"       // the host's memory behind addresses of the device
)

// Cases that differ within a group.
const (
	CasePair         = "pair"          // malloc and free
	CaseSyncPair     = "pair_and_sync" // and the stream is waited for
	CaseHot          = "hot_pair"      // the engine's pair of 4 KiB
	CaseWindow       = "window_512"    // random blocks of 512 replaced
	CaseGrow         = "grow"          // malloc and empty_cache
	CaseMapping      = "mapping"       // from creating handles to releasing them
	CaseRecordStream = "record_stream_pair"
	CasePinned       = "pinned"
	CasePageable     = "pageable"
	CaseDevice       = "device"
	CaseExplicit     = "explicit"  // page-locked memory and copies
	CaseOnDemand     = "on_demand" // managed memory, moved by faults
	CasePrefetch     = "prefetch"  // managed memory, moved by prefetching
	CaseDriver       = "driver_pair"
	CasePool         = "pool_pair"
	CaseReuse        = "reuse"    // memory that one stream freed may go to another
	CaseNoReuse      = "no_reuse" // it may not
	CaseSequential   = "sequential"
	CaseStrided      = "strided"
	CaseRandom       = "random"
	CaseHostPages    = "host_pages" // made and given back
	CasePark         = "park"       // moved there by alloc/tier, used, and restored
)

// Parts of a case that are timed by themselves.
const (
	PartAll       = "all"
	PartAlloc     = "alloc"
	PartFree      = "free"
	PartCreate    = "create"
	PartMap       = "map"
	PartSetAccess = "set_access"
	PartUnmap     = "unmap"
	PartRelease   = "release"
	PartMalloc    = "malloc"
	PartEmpty     = "empty_cache"
	PartToDevice  = "to_device"
	PartToHost    = "to_host"
	PartOnDevice  = "on_device"
	PartRead      = "read"
	PartWrite     = "write"

	PartDevice     = "device" // which memory a kernel reads
	PartResident   = "managed_resident"
	PartFault      = "managed_fault"
	PartPrefetch   = "managed_prefetch"
	PartReadMostly = "managed_read_mostly"
	PartMapped     = "managed_mapped"
)

// Bench is how long operations on the memory of one device take.
type Bench struct {
	Device        Card      `json:"device"`
	DriverVersion *string   `json:"driver_version"`
	CUDAVersion   string    `json:"cuda_version"`
	CPUs          int       `json:"cpus"` // that this program may use
	Quick         bool      `json:"quick"`
	FreeBytes     uint64    `json:"free_bytes"` // before the first case
	ElapsedS      float64   `json:"elapsed_s"`
	Rows          []Row     `json:"rows"`
	Skipped       []Skipped `json:"skipped"`
	Reading       []string  `json:"reading"`
	Interrupted   bool      `json:"interrupted"`
}

// Row is one thing that was timed.
type Row struct {
	Group      string  `json:"group"`
	Case       string  `json:"case"`
	Part       string  `json:"part"`
	What       string  `json:"what"` // what one of the timed things is
	Settings   *string `json:"settings"`
	Size       *uint64 `json:"size_bytes"`
	Handles    *int    `json:"handles"`
	Goroutines *int    `json:"goroutines"`
	Streams    *int    `json:"streams"`
	// PoolReserved is the most that the driver's pool held; nil if it is not about
	// that.
	PoolReserved *uint64 `json:"pool_reserved_bytes"`

	Rounds   int     `json:"rounds"`
	PerRound int     `json:"per_round"` // how many of them a round has
	Median   float64 `json:"median_ns"` // of one of them, over the rounds
	Low      float64 `json:"quartile_low_ns"`
	High     float64 `json:"quartile_high_ns"`
	Least    float64 `json:"least_ns"`
	Most     float64 `json:"most_ns"`
}

// Skipped is a case that was not timed.
type Skipped struct {
	Group      string  `json:"group"`
	Case       string  `json:"case"`
	Settings   *string `json:"settings"`
	Size       *uint64 `json:"size_bytes"`
	Handles    *int    `json:"handles"`
	Goroutines *int    `json:"goroutines"`
	Streams    *int    `json:"streams"`
	Why        string  `json:"why"`
}

// Find returns the rows of a case, one for each size, number of handles or
// goroutines, or settings that was tried; an empty part or case stands for all.
func (b *Bench) Find(group, kind, part string) []*Row {
	var rows []*Row
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Group == group && (kind == "" || r.Case == kind) && (part == "" || r.Part == part) {
			rows = append(rows, r)
		}
	}
	return rows
}

// find returns the row of one size, or nil.
func (b *Bench) find(group, kind, part string, size uint64) *Row {
	for _, r := range b.Find(group, kind, part) {
		if r.Size != nil && *r.Size == size {
			return r
		}
	}
	return nil
}

// key is what distinguishes a row from the others.
func (r *Row) key() [8]string {
	k := [8]string{r.Group, r.Case, r.Part}
	if r.Settings != nil {
		k[3] = *r.Settings
	}
	if r.Size != nil {
		k[4] = fmt.Sprint(*r.Size)
	}
	if r.Handles != nil {
		k[5] = fmt.Sprint(*r.Handles)
	}
	if r.Goroutines != nil {
		k[6] = fmt.Sprint(*r.Goroutines)
	}
	if r.Streams != nil {
		k[7] = fmt.Sprint(*r.Streams)
	}
	return k
}

// PerHandle is the median divided by the number of handles.
func (r *Row) PerHandle() float64 {
	if r.Handles == nil {
		return r.Median
	}
	return r.Median / float64(*r.Handles)
}

// BytesPerSecond is how fast the bytes of the row moved; 0 if it moves none.
func (r *Row) BytesPerSecond() float64 {
	if r.Size == nil || r.Median <= 0 {
		return 0
	}
	return float64(*r.Size) / r.Median * float64(time.Second)
}
