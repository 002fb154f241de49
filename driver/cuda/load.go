//go:build (darwin || freebsd || linux || netbsd) && !android && !static

package cuda

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// open loads a shared library and keeps it loaded. dlerror has the reason of a
// failure on the thread that called dlopen, and on no other.
func open(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// lookup returns the address of a function, or 0.
func lookup(handle uintptr, name string) uintptr {
	addr, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return addr
}

// invoke calls a function of a shared library.
func invoke(addr uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(addr, args...)
	return r
}
