// Package cuda is a GPU reached through NVIDIA's driver: a [driver.Driver]
// whose memory is real.
//
// [Open] loads libcuda.so.1 when the program runs. Nothing of CUDA is needed
// to build, and a machine without a driver or a GPU gets an ordinary error:
// [ErrNoDriver], [ErrNoDevice], [ErrOldDriver]. A [Device] serves the engine
// ([driver.Driver]), moves bytes ([driver.Copier]) and knows who else uses the
// card ([driver.ProcessLister]). All its methods may be called from many
// goroutines at once.
//
// # Contexts and threads
//
// A driver call acts on the context that is current on the calling thread. A
// Device uses the primary context of its card, the one that the CUDA runtime
// and so PyTorch use. Each method keeps its goroutine on one thread, looks
// which context is current there, pushes its own if it is another one, and
// pops it again at the end: whoever owns the thread finds it as it was. A
// goroutine that makes many calls saves the push and the pop with
// [Device.Bind].
//
// # Streams
//
// A stream is the driver's handle as a number, the same number as PyTorch's
// cudaStream_t. Stream 0 is the legacy default stream.
//
// A stream that was closed is kept, idle, until NewStream needs one or the
// Device is closed. So a block that was used on it can still be freed, its
// memory unmapped, and an event recorded on it is done; work for it is refused
// with [ErrStreamClosed]. Streams that others made are theirs to keep.
//
// # Virtual memory
//
// Map makes one handle of physical memory per granule, maps them side by side
// and opens the whole range with one call. A handle is released as soon as it
// is mapped: from then on the mapping alone keeps the memory, and Unmap, one
// driver call over the range, gives it back. So there is no list of handles to
// keep, and Unmap either happens or does not.
//
// Mapped memory is opened to its own card only. What Malloc gives becomes open
// to other cards with cuCtxEnablePeerAccess, mapped memory does not.
//
// # Captures
//
// While a stream is captured into a graph the driver refuses, on every thread,
// calls that could break the capture, and the refusal ends it. Calls that the
// allocator makes on its own account (allocating, freeing, mapping, asking
// events) therefore run in the relaxed capture mode, which lets them through,
// and the thread's mode is put back afterwards.
//
// Free works during a capture: it waits for work that runs, and captured work
// does not run yet. Unmap has to wait for its stream, and waiting for a
// captured stream is not possible in any mode. It then returns [ErrCapturing],
// nothing is unmapped and the capture goes on.
//
// # Events
//
// Events are kept in a table and used again. An [driver.Event] carries the
// count of the uses of its place, so a name that is used too late is an error
// and never somebody else's event.
//
// # Errors
//
// What the driver reports is an [*Error] with its name and its words. Out of
// memory is also [driver.ErrOutOfMemory], and the end of the process, during
// which the driver answers nothing more, is [ErrExiting].
//
// The environment variables ASHLAR_LIBCUDA and ASHLAR_LIBNVML name other files
// to load. Tests use them for the stand-in of package cudatest.
package cuda
