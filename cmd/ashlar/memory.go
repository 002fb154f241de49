package main

import "runtime/debug"

// The sizes of a file from which reading it trades time for memory.
const (
	largeFile = 256 << 20
	hugeFile  = 1 << 30
)

// tightMemory keeps the garbage small while a large file is read: nearly all
// of what is allocated then stays, so collecting more often is cheap. It
// returns the way back.
func tightMemory(fileBytes int64) (undo func()) {
	percent := 100
	switch {
	case fileBytes >= hugeFile:
		percent = 20
	case fileBytes >= largeFile:
		percent = 50
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}
