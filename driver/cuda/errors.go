package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ashlar-mem/ashlar/driver"
)

var (
	// ErrNoDriver is returned by Open where NVIDIA's driver is not installed.
	ErrNoDriver = errors.New("no NVIDIA driver")

	// errCannotLoad is why no library at all can be loaded.
	errCannotLoad = errors.New("this program cannot load shared libraries")

	// ErrNoDevice is returned by Open where the driver finds no GPU, and for
	// an index that no GPU has.
	ErrNoDevice = errors.New("no GPU")

	// ErrOldDriver is returned by Open for a driver older than CUDA 10.2, and
	// later by methods that need a newer one than is installed.
	ErrOldDriver = errors.New("the NVIDIA driver is too old")

	// ErrExiting is what calls fail with while the process exits: the driver
	// has shut down and all memory is gone already.
	ErrExiting = errors.New("the CUDA driver has shut down")

	// ErrCapturing is returned by calls that would have to wait for a stream
	// which is being captured. They have changed nothing.
	ErrCapturing = driver.ErrCapturing

	// ErrStreamClosed is returned for work on a stream that CloseStream closed.
	ErrStreamClosed = errors.New("the stream is closed")

	// ErrClosed is returned by every method of a closed Device but Close.
	ErrClosed = errors.New("the device is closed")

	// ErrContextExists is returned by ContextCost if this process has a
	// context on the device already.
	ErrContextExists = errors.New("the process has a context on the device already")
)

// Result codes of the driver that mean something here.
const (
	codeOutOfMemory        = 2
	codeDeinitialized      = 4
	codeStubLibrary        = 34
	codeNoDevice           = 100
	codeInvalidDevice      = 101
	codeNotReady           = 600
	codeCaptureUnsupported = 900
	codeCaptureImplicit    = 906
)

// Error is a refusal by the driver.
type Error struct {
	Call string // the function, as the driver exports it
	Code int    // its result
	Name string // CUDA_ERROR_OUT_OF_MEMORY
	Text string // out of memory
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%s, code %d)", e.Call, e.Text, e.Name, e.Code)
}

// Is makes out of memory [driver.ErrOutOfMemory] and the end of the process
// [ErrExiting].
func (e *Error) Is(target error) bool {
	switch target {
	case driver.ErrOutOfMemory:
		return e.Code == codeOutOfMemory
	case ErrExiting:
		return e.Code == codeDeinitialized
	case ErrNoDevice:
		return e.Code == codeNoDevice || e.Code == codeInvalidDevice
	}
	return false
}

// fail makes the error for a result of the driver.
func (l *Library) fail(s symbol, code int) error {
	return &Error{
		Call: symbolNames[s],
		Code: code,
		Name: l.errorText(symGetErrorName, code, "CUDA_ERROR"),
		Text: l.errorText(symGetErrorString, code, "the driver has no text for it"),
	}
}

func (l *Library) errorText(s symbol, code int, otherwise string) string {
	c := l.takeCall()
	defer l.putCall(c)
	c.ptr = nil
	if l.addr[s] == 0 || c.raw(s, uintptr(code), c.out(unsafe.Pointer(&c.ptr))) != 0 || c.ptr == nil {
		return otherwise
	}
	return cString(c.ptr)
}

// cString copies a text of C that ends with a zero byte.
func cString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}
