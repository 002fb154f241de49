//go:build !linux

package fleet

import "os/exec"

func ownGroup(*exec.Cmd) {}

func firstToGo(int) {}

// residentBytes is not known here: there is no limit but Go's own.
func residentBytes(int) uint64 { return 0 }
