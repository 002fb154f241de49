//go:build !linux

package fleet

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func firstToGo(int) {}

// residentBytes is not known here: there is no limit but Go's own.
func residentBytes(int) uint64 { return 0 }

// nameless returns nil: elsewhere each file has a name.
func nameless(string) (f *os.File, path string) { return nil, "" }

// withoutName returns the name: elsewhere an open file has no other path.
func withoutName(f *os.File) (path string) { return f.Name() }
