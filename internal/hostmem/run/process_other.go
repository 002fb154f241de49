//go:build !linux

package run

import (
	"os/exec"
	"syscall"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// Other systems have no /proc to measure by: nothing of this is reached.

func ownGroup() *syscall.SysProcAttr { return nil }

func inGroup(int) *syscall.SysProcAttr { return nil }

func awaitEnd(int) bool { return false }

func holdAtStart(*exec.Cmd) bool { return false }

func letStart(int) {}

func signalGroup(int, syscall.Signal) {}

func totalsOf(*syscall.Rusage) totals { return totals{} }

func ownMaxRSS() uint64 { return 0 }

func holdOrphans() (func(), bool) { return nil, false }

type mark uint64

func newMark(int) (mark, bool) { return 0, false }

func (mark) on(int) bool { return false }

func collectChild(int) (*Exit, totals, bool) { return nil, totals{}, false }

func signalDescendant(*proc.Stat, syscall.Signal) bool { return false }
