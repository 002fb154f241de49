// Libashlar is the allocator as a shared library for PyTorch and for anything
// else that can call C.
//
//	go build -buildmode=c-shared -o libashlar.so ./cmd/libashlar
//
//	alloc = torch.cuda.memory.CUDAPluggableAllocator("libashlar.so", "ashlar_malloc", "ashlar_free")
//	torch.cuda.memory.change_current_allocator(alloc)
//
// Package alloc does all the work; python/ashlar_torch.py installs the library
// with everything that PyTorch offers around it. The functions are in ashlar.h.
//
// # Layers
//
//	torch_*.cpp            what PyTorch calls: torch_entry, torch_pools (C++ types),
//	                       torch_cacheinfo (it has no setter), torch_throw (exceptions)
//	front.c, front_*       the front cache: answers without entering Go
//	ashlar_*.c             the other functions of ashlar.h: ashlar_calls enters Go,
//	                       ashlar_gate says whether that may be, ashlar_error why not
//	bridge.c, cfront.go    what Go asks of the front
//	export.go              the way into Go: one crossing for each miss
//	devices.go, serve.go   an allocator for each device, made at its first use
//	drivers.go             where memory comes from: driver/cuda, or driver/sim
//
// # Why there is C
//
// A call from C into Go costs a tenth of a microsecond when calls follow each
// other closely, and ten microseconds after a millisecond in C, because the
// runtime's processors have gone to sleep by then. PyTorch calls at both paces.
// So most requests must not enter Go at all.
//
// The front cache knows no rule of the allocator. It holds blocks that were
// freed and hands them out again for the same size and stream. The engine says
// of each block whether that is allowed ([alloc.Lent]), and the answer is no for
// whatever has rules of its own: private pools, blocks that another stream uses,
// requests that max_split_size treats apart, everything while a graph is
// captured, while history is recorded, or while garbage collection counts the
// searches.
//
//   - Large blocks decide how much memory is reserved, so there the front is
//     exact (front_stack.h). If the engine has heard nothing since it handed out
//     a block, then after its free it would be as before the request, and the
//     same request would get the same block. So the front hands that one out,
//     and the engine hears of neither. This holds for a whole stack of blocks
//     that are freed in the reverse order of their requests. A free in any other
//     order ends it, and so does whatever else changes the engine: new or
//     released memory, blocks that wait for other streams, a call of another
//     thread at the same time.
//   - Small blocks of sizes that come again stay until they are asked for or
//     called back (front_bins.h).
//   - All other frees wait for the next request that the front cannot answer
//     (front_queue.h): the engine takes them back first, in their order, so it
//     chooses among all of them. One crossing does both.
//   - The front is a borrower of the engine ([alloc.Borrower]), which takes
//     everything back before memory grows, is given back to the driver, or
//     anything is told: statistics, snapshots, errors; before a pool receives
//     allocations and before settings change. It does so under its own lock: with
//     any number of threads a freed block is either in the front or in the engine,
//     and no request fails for want of one that is on its way.
//   - While freed blocks wait for other streams every request goes to the
//     engine, which looks after them at each request, as PyTorch does.
//
// So for one thread large blocks lie where they would lie without a front, and
// reserved bytes, retries and failures are the same. With small blocks among them
// a front never makes memory grow while it holds some, but where small blocks
// lie may differ, and with it inactive_split and a few MiB of reserved memory.
// What is handed out and freed is counted in C (front_count.h) and put in the
// place of the engine's numbers where statistics leave (stats.go).
// front_cache:False switches the front off.
//
// A pointer leads to its record through a table over the bits of the address
// (front_table.c). One lock guards a device's front; front_lock.h says how many
// threads share it.
//
// # What a library in a foreign process must not do
//
// It does not enter Go in a forked child nor while the process exits
// (ashlar_gate.c). It does not throw through Go: Go returns a code and a text, and the shim
// throws after Go has returned. It handles no signals. It makes no garbage
// while it serves memory, and keeps the collector off (setCollector). It reads
// the environment through C, because Go sees the one the process began with.
// It keeps one pointer of thread-local memory: the static block that a Go
// library needs is small.
//
// # Settings
//
// ASHLAR_CONF has PyTorch's keys and these; without it PyTorch's own variables
// are read.
//
//	front_cache:False     no front cache
//	history:N             record the newest N events from the start
//	oom_snapshot:PATH     write a snapshot at the first out-of-memory error;
//	                      %p is the process, %d the device
//
// expandable_segments is True unless it is set. ASHLAR_DRIVER=sim and
// ASHLAR_SIM_MEMORY=80GiB put the library on a device that exists only as
// numbers; ASHLAR_FRONT_LOCK changes the times of the lock (front_lock.c);
// ASHLAR_PATCH_TORCH=0 keeps the library from changing PyTorch (torch_cacheinfo.cpp).
package main
