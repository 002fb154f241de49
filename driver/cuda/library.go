package cuda

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// Library is the driver, loaded and initialised.
type Library struct {
	path    string
	given   bool // by ASHLAR_LIBCUDA
	version Version
	addr    [symbols]uintptr
	calls   sync.Pool // of *call
	nvml    nvml
}

// Version is the newest CUDA that a driver supports.
type Version int

func (v Version) String() string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Open loads the driver. A machine without a driver, without a GPU or with too
// old a driver gets an error that is [ErrNoDriver], [ErrNoDevice] or
// [ErrOldDriver].
func Open() (*Library, error) {
	l := new(Library)
	handle, err := l.load()
	if err != nil {
		return nil, err
	}
	for s := range l.addr {
		l.addr[s] = lookup(handle, symbolNames[s])
	}
	if s := l.missing(); s != "" {
		hint := "install driver 440 (CUDA 10.2) or newer"
		if l.given {
			hint = "is it NVIDIA's driver, 440 (CUDA 10.2) or newer?"
		}
		return nil, fmt.Errorf("%w: %s has no %s; %s", ErrOldDriver, l.file(), s, hint)
	}
	if err := l.init(); err != nil {
		return nil, err
	}
	return l, nil
}

// load tries the names of the library in turn.
func (l *Library) load() (uintptr, error) {
	names := []string{"libcuda.so.1", "libcuda.so"}
	if other := os.Getenv("ASHLAR_LIBCUDA"); other != "" {
		names, l.given = []string{other}, true
	}
	var reasons []string
	for _, name := range names {
		handle, err := open(name)
		if errors.Is(err, errCannotLoad) {
			return 0, fmt.Errorf("%w: %w", ErrNoDriver, err)
		}
		if err == nil {
			l.path = name
			return handle, nil
		}
		reasons = append(reasons, err.Error())
	}
	if l.given {
		return 0, fmt.Errorf("%w: ASHLAR_LIBCUDA=%s cannot be loaded: %s; correct it, or unset it to use the system's driver",
			ErrNoDriver, names[0], reasons[0])
	}
	return 0, fmt.Errorf("%w: %s; install NVIDIA's driver, or start the container with its GPUs (docker run --gpus all)",
		ErrNoDriver, strings.Join(reasons, "; "))
}

// file names the library in messages, and says so if the environment chose it.
func (l *Library) file() string {
	if l.given {
		return l.path + " (named by ASHLAR_LIBCUDA)"
	}
	return l.path
}

// missing names a function that every driver must have and this one has not.
func (l *Library) missing() string {
	for s := range symRequired {
		if l.addr[s] == 0 {
			return symbolNames[s]
		}
	}
	return ""
}

// init starts the driver and looks for a GPU.
func (l *Library) init() error {
	c := l.takeCall()
	defer l.putCall(c)
	switch code := c.raw(symInit, 0); code {
	case 0:
	case codeNoDevice:
		return fmt.Errorf("%w: the driver in %s finds none%s", ErrNoDevice, l.file(), visible())
	case codeStubLibrary:
		return fmt.Errorf("%w: %s is the stub that programs are linked with; install NVIDIA's driver", ErrNoDriver, l.file())
	default:
		return fmt.Errorf("the NVIDIA driver in %s does not start: %w; nvidia-smi may tell more", l.file(), l.fail(symInit, code))
	}
	if err := c.do(symDriverGetVersion, c.out(unsafe.Pointer(&c.i))); err != nil {
		return err
	}
	l.version = Version(c.i)
	n, err := l.Devices()
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: the driver in %s finds none%s", ErrNoDevice, l.file(), visible())
	}
	return err
}

// visible says that the environment hides GPUs, if it does.
func visible() string {
	if v, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		return fmt.Sprintf(" (CUDA_VISIBLE_DEVICES=%q hides all others)", v)
	}
	return "; nvidia-smi -L lists those that are there"
}

// Version is the newest CUDA that the driver supports.
func (l *Library) Version() Version { return l.version }

// Path is the name the driver was loaded by.
func (l *Library) Path() string { return l.path }

// Devices counts the GPUs, those that CUDA_VISIBLE_DEVICES shows.
func (l *Library) Devices() (int, error) {
	c := l.takeCall()
	defer l.putCall(c)
	if err := c.do(symDeviceGetCount, c.out(unsafe.Pointer(&c.i))); err != nil {
		return 0, err
	}
	return int(c.i), nil
}
