//go:build (darwin || freebsd || linux || netbsd) && !android

package cuda

import "github.com/ebitengine/purego"

// open loads a shared library and keeps it loaded.
func open(name string) (uintptr, error) {
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
