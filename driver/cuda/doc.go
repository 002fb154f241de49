// Package cuda is a [driver.Driver] for a GPU, through NVIDIA's driver.
//
// [Open] loads libcuda.so.1 at run time. Building needs no part of CUDA, and on a
// machine without a driver or a GPU Open returns an ordinary error:
// [ErrNoDriver], [ErrNoDevice], [ErrOldDriver]. A [Device] serves the engine
// ([driver.Driver]), moves bytes ([driver.Copier]) and lists the processes that
// use the card ([driver.ProcessLister]). Its methods are safe for concurrent use.
//
// # Contexts and threads
//
// A driver call acts on the context that is current on the calling thread. A
// Device uses the primary context of its card, which the CUDA runtime, and so
// PyTorch, uses too. Each method locks its goroutine to a thread, pushes its
// context if another one is current there, and pops it at the end, so the thread
// is left as it was. A goroutine that makes many calls can avoid the push and pop
// with [Device.Bind].
//
// # Streams
//
// A stream is the driver's handle as a number, the same number as PyTorch's
// cudaStream_t. Stream 0 is the legacy default stream.
//
// A closed stream is kept, idle, until NewStream needs one or the Device is
// closed. So a block used on it can still be freed and its memory unmapped, and an
// event recorded on it is done at once. New work on it is refused with
// [ErrStreamClosed]. The Device does not manage streams that others made.
//
// # Virtual memory
//
// Map makes one handle of physical memory per granule, maps them side by side
// and gives the card access to the whole range with one call. A handle is released
// as soon as it is mapped: from then on the mapping alone keeps the memory, and
// Unmap gives it back with one driver call over the range. So there is no list of
// handles to keep, and Unmap happens completely or not at all.
//
// Memory of the host is mapped the same way ([driver.HostMapper]): the card reads and
// writes it over the bus, and [Device.CopyMapped] moves bytes between the two kinds.
//
// Only its own card can access mapped memory. cuCtxEnablePeerAccess opens memory
// from Malloc to other cards, but not mapped memory.
//
// # Captures
//
// While a stream is captured into a graph, the driver refuses calls that could
// break the capture, on every thread, and each refusal ends the capture. The
// allocator's own calls (allocate, free, map, query events) therefore run in the
// relaxed capture mode, which permits them; the thread's mode is restored
// afterwards.
//
// Free works during a capture: it waits for running work, and captured work does
// not run yet. Unmap has to wait for its stream, which no mode allows for a
// captured stream. It then returns [ErrCapturing], unmaps nothing, and the capture
// goes on. SynchronizeDevice does the same for every capture that it knows of.
//
// # Events
//
// Events are kept in a table and reused. A [driver.Event] includes how often its
// slot was used, so a stale event is an error and never another event.
//
// # Errors
//
// An error of the driver is an [*Error] with the driver's name and text for it.
// Out of memory also wraps [driver.ErrOutOfMemory]. While the process exits the
// driver no longer answers: the error is [ErrExiting].
//
// The environment variables ASHLAR_LIBCUDA and ASHLAR_LIBNVML name other files
// to load. Tests use them for the fake driver of package cudatest.
package cuda
