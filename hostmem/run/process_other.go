//go:build !linux

package run

import "syscall"

// Other systems have no /proc to measure by: nothing of this is reached.

func ownGroup() *syscall.SysProcAttr { return nil }

func awaitEnd(int) {}

func signalGroup(int, syscall.Signal) {}

func maxRSS(*syscall.Rusage) uint64 { return 0 }

func ownMaxRSS() uint64 { return 0 }
