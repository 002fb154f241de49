// Libashlar is the allocator as a shared library, for PyTorch and anything else
// that can call C.
//
//	go build -buildmode=c-shared -o libashlar.so ./cmd/libashlar
//
//	alloc = torch.cuda.memory.CUDAPluggableAllocator("libashlar.so", "ashlar_malloc", "ashlar_free")
//	torch.cuda.memory.change_current_allocator(alloc)
//
// Package alloc does all the work; python/ashlar_torch.py installs the library
// and connects it to PyTorch's own functions. The functions are in ashlar.h.
//
// # Layers
//
//	torch_*.cpp            what PyTorch calls: torch_entry, torch_pools (C++ types),
//	                       torch_cacheinfo (it has no setter), torch_throw (exceptions)
//	front.c, front_*       the front cache: answers without entering Go
//	ashlar_*.c             the other functions of ashlar.h: ashlar_calls enters Go,
//	                       ashlar_gate decides whether it may, ashlar_error keeps errors
//	bridge.c, cfront.go    calls from Go to the front
//	export.go              the entry to Go: one crossing for each miss
//	devices.go, serve.go   an allocator for each device, made at first use
//	tenants.go             further ones for tenants, which have streams of the device (docs/tenants.md)
//	tiers.go               and for regions, which threads are in: memory that moves to the host (docs/tiers.md)
//	drivers.go             where memory comes from: driver/cuda, or driver/sim
//
// # Why there is C
//
// A call from C into Go costs a tenth of a microsecond when calls follow each
// other closely, and ten microseconds after a millisecond in C, because the
// runtime's processors have gone to sleep by then. PyTorch calls at both paces.
// So most requests must not enter Go at all.
//
// The front cache knows no rule of the allocator. It holds freed blocks and hands
// them out again for the same size and stream. The engine decides for each block
// whether that is allowed ([alloc.Lent]). It is not allowed for memory with rules
// of its own: private pools, blocks that another stream uses, requests that
// max_split_size treats specially; and for no block while a graph is captured,
// history is recorded, or garbage collection counts searches.
//
//   - Large blocks decide how much memory is reserved, so for them the front is
//     exact (front_stack.h). If the engine was not called since it handed out a
//     block, freeing the block would restore the engine's earlier state, and the
//     same request would get the same block. So the front hands that block out
//     again without calling the engine. This holds for a whole stack of blocks
//     that are freed in the reverse order of their requests. A free in any other
//     order ends it, and so does anything else that changes the engine: new or
//     released memory, blocks that wait for other streams, a call by another
//     thread at the same time.
//   - Small blocks of recurring sizes stay in the front until they are requested
//     or recalled (front_bins.h).
//   - All other frees wait for the next request that the front cannot serve
//     (front_queue.h): the engine takes them back first, in their order, so it
//     chooses among all of them. One crossing does both.
//   - The front is a borrower of the engine ([alloc.Borrower]). The engine takes
//     all blocks back before memory grows or is released, before it reports
//     statistics, snapshots or errors, before a pool receives allocations and
//     before settings change. It does so under its own lock: with any number of
//     threads a freed block is either in the front or in the engine, and no
//     request fails because a block is in transit.
//   - While freed blocks wait for other streams, every request goes to the
//     engine, which checks them at each request, as PyTorch does.
//
// So with one thread, large blocks have the same addresses as without a front, and
// reserved bytes, retries and failures are the same. With small blocks too, the
// front never makes memory grow while it holds some, but their addresses may
// differ, and with them inactive_split and a few MiB of reserved memory. C counts
// what is handed out and freed (front_count.h); these counts replace the engine's
// in the statistics (stats.go). front_cache:False switches the front off.
//
// A device, a tenant or a region of it is a slot, with an engine and a front of its own;
// the front finds the slot of a request by the region of its thread or by its stream, and
// that of a free by the block's record. All slots of a device share its lock.
//
// While memory moves to the host or back, the fronts of the device are off. Blocks that were
// handed out before do not enter them any more: what lies behind them may be slow.
//
// A table over the bits of the address leads from a pointer to its record
// (front_table.c). One lock guards a device's front; front_lock.h describes how
// threads share it.
//
// # Rules for a library in a foreign process
//
// It does not enter Go in a forked child or while the process exits
// (ashlar_gate.c). It does not throw through Go: Go returns a code and a text, and
// the shim throws after Go has returned. It handles no signals. It makes no garbage
// while it serves memory, and keeps the collector off (setCollector). It reads the
// environment through C, because Go sees the environment that the process started
// with. It keeps only one pointer in thread-local memory, because the static block
// for such memory, which a Go library also needs, is small.
//
// # Settings
//
// ASHLAR_CONF takes PyTorch's keys and the following; if it is not set, PyTorch's
// own variables apply.
//
//	front_cache:False     no front cache
//	tiers:False           memory stays on the device: no regions, nothing is parked
//	overflow:64GiB        requests that would fail get up to so much of the host's memory
//	host_limit:32GiB      so much of it is taken at most; half of what is available if it is not set
//	region_page:20MiB     the size of a region's pages; 120 MiB if it is not set
//	history:N             record the newest N events from the start
//	oom_snapshot:PATH     write a snapshot at the first out-of-memory error;
//	                      %p is the process, %d the device
//
// expandable_segments is True by default. ASHLAR_DRIVER=sim and
// ASHLAR_SIM_MEMORY=80GiB make the library use a simulated device; ASHLAR_FRONT_LOCK changes the times of the lock (front_lock.c);
// ASHLAR_PATCH_TORCH=0 keeps the library from changing PyTorch (torch_cacheinfo.cpp).
package main
