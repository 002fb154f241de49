package driver

import "errors"

// ErrCapturing is returned by calls that would have to wait for a stream which
// is being captured into a graph, or would pull others into the capture.
var ErrCapturing = errors.New("the stream is being captured")

// A Capturer is a Copier whose streams can be captured into graphs: work queued
// on them then is collected and not done.
type Capturer interface {
	// Capturing reports whether the stream takes part in a capture.
	Capturing(stream uint64) (bool, error)
}

// A Copier is a Driver whose memory holds bytes that a program can reach:
// driver/cuda on a GPU and driver/host in the memory of this machine. Work on
// one stream is done in order; work on different streams is ordered only by
// events. Stream 0 always exists.
//
// A call that queues work returns before the work is done: host memory named
// in it must stay as it is until the stream has passed it.
type Copier interface {
	Driver

	// NewStream makes a stream that does not wait for stream 0.
	NewStream() (stream uint64, err error)

	// CloseStream waits for the work of a stream, reports what went wrong in it
	// as Synchronize does, and closes the stream in any case: it takes no more
	// work. Calls that only wait for a stream may still name a closed one. The
	// allocator does so when a block used on it is freed, or memory cached for it
	// is given back: RecordEvent then returns an event that is done, and
	// StreamWait, Synchronize and Unmap do not wait.
	CloseStream(stream uint64) error

	// Synchronize waits until all work queued on stream is done, and reports
	// what went wrong in it.
	Synchronize(stream uint64) error

	// StreamWait makes work queued on stream from now on wait for the event. The
	// caller does not wait.
	StreamWait(stream uint64, ev Event) error

	// AllocHost gets page-locked memory of the host, which copies can run from
	// and to while the program does something else.
	AllocHost(size uint64) ([]byte, error)

	// FreeHost gives back memory from AllocHost.
	FreeHost(mem []byte) error

	// CopyToDevice, CopyToHost and CopyOnDevice queue a copy on stream. With 0
	// bytes they, and Fill, do nothing, whatever the other arguments are.
	CopyToDevice(dst uint64, src []byte, stream uint64) error
	CopyToHost(dst []byte, src, stream uint64) error
	CopyOnDevice(dst, src, size, stream uint64) error

	// Fill queues setting size bytes at addr to value on stream.
	Fill(addr uint64, value byte, size, stream uint64) error
}
