//go:build !((darwin || freebsd || linux || netbsd) && !android)

package cuda

import "errors"

func open(string) (uintptr, error) {
	return 0, errors.New("this package loads shared libraries on Linux and its relatives only")
}

func lookup(uintptr, string) uintptr { return 0 }
