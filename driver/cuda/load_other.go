//go:build !((darwin || freebsd || linux || netbsd) && !android && !static)

package cuda

import (
	"fmt"
	"runtime"
)

// open fails: elsewhere, and in a static program (-tags static), no shared
// library can be loaded.
func open(string) (uintptr, error) {
	if runtime.GOOS == "linux" {
		return 0, fmt.Errorf("%w: it is the static build; on Linux with glibc use the other one (docs/install.md)", errCannotLoad)
	}
	return 0, fmt.Errorf("%w on %s: use Linux", errCannotLoad, runtime.GOOS)
}

func lookup(uintptr, string) uintptr { return 0 }

func invoke(uintptr, ...uintptr) uintptr { panic("cuda: no library was loaded") }
