package run

import (
	"os"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// kin is a command with all its descendants, also those that have left its
// process group and were left by their parents, as daemons do. An orphan comes
// to this program, which is the kernel's subreaper while a command runs, and is
// the command's in either of two cases: it was seen in its tree before, or it has
// the mark, which is given to the first process and inherited by all others.
// Other children of this program have neither, and are left alone.
//
// The calls are made by one goroutine.
type kin struct {
	first   int // its first process, which others wait for
	mark    mark
	release func()         // lets orphans go to init again
	seen    map[int]uint64 // those that were found and run, with when they began
	used    totals         // by orphans that were collected

	daemon      int           // who goes on for the first process; 0: nobody does
	daemonEnded chan struct{} // closed when it has ended
	daemonExit  *Exit         // once it was collected
	failure     *Exit         // of the first orphan of another group that failed
	ending      bool          // they are being ended: then it is no failure
}

// totals is what the kernel has counted for processes that have ended.
type totals struct {
	cpu              time.Duration
	faults, switches uint64
	maxRSS           uint64 // of the largest one
}

func (t *totals) add(o totals) {
	t.cpu += o.cpu
	t.faults += o.faults
	t.switches += o.switches
	t.maxRSS = max(t.maxRSS, o.maxRSS)
}

// look finds all of them that run, parents before children, and collects the
// orphans among those that have ended.
func (k *kin) look() []*proc.Stat {
	all := k.children()
	for i := 0; i < len(all); i++ {
		for _, pid := range proc.Children(all[i].PID) {
			// Its number may be another's by now: so its parent counts.
			if s, err := proc.ReadStat(pid); err == nil && s.Parent == all[i].PID && !exited(s) {
				all = append(all, s)
			}
		}
	}
	found := make(map[int]bool, len(all))
	for _, s := range all {
		k.seen[s.PID], found[s.PID] = s.Start, true
	}
	for pid, start := range k.seen {
		if found[pid] {
			continue
		}
		if s, err := proc.ReadStat(pid); err != nil || s.Start != start {
			delete(k.seen, pid)
		}
	}
	return all
}

// children finds those that are children of this program: the first process and
// orphans. One that has ended since they were listed may have left orphans that
// are not in the list: then there is another.
func (k *kin) children() []*proc.Stat {
	const lists = 10 // there may be no end of short processes
	self := os.Getpid()
	ended := map[int]bool{}
	for n := 1; ; n++ {
		var all []*proc.Stat
		again := false
		for _, pid := range proc.Children(self) {
			s, err := proc.ReadStat(pid)
			if err == nil && (s.Parent != self || !k.has(s)) {
				continue // another's
			}
			if err == nil && !exited(s) {
				all = append(all, s)
				continue
			}
			again = again || !ended[pid]
			ended[pid] = true
			if err == nil && pid != k.first {
				k.collect(s)
			}
		}
		if !again || n == lists {
			return all
		}
	}
}

// exited tells whether a process has ended, not only its first thread: the others
// may still have children.
func exited(s *proc.Stat) bool { return s.Ended() && s.Threads <= 1 }

// has tells whether a child of this program belongs to the command.
func (k *kin) has(s *proc.Stat) bool {
	start, seen := k.seen[s.PID]
	return s.PID == k.first || seen && start == s.Start || k.mark.on(s.PID)
}

// pids lists all of them that run, for a sampler.
func (k *kin) pids() []int {
	var pids []int
	for _, s := range k.look() {
		pids = append(pids, s.PID)
	}
	return pids
}

// collect takes an orphan that has ended out of the table of processes.
func (k *kin) collect(s *proc.Stat) {
	if s.PID == k.daemon {
		select {
		case <-k.daemonEnded:
		default:
			return // somebody still waits for it
		}
	}
	exit, used, ok := collectChild(s.PID)
	if !ok {
		return
	}
	k.used.add(used)
	if s.PID == k.daemon {
		k.daemonExit = exit
	}
	if *exit != (Exit{}) && s.Group != k.first && k.failure == nil && !k.ending {
		k.failure = exit
	}
}

// failed is how a service ended that was over with success: a daemon may have
// failed before it was known to be the one that goes on.
func (k *kin) failed(e *Exit) *Exit {
	if k != nil && e != nil && *e == (Exit{}) && k.failure != nil {
		return k.failure
	}
	return e
}

// settledWithin is how long a command that goes to the background may take for
// it after its first process has ended.
const settledWithin = 500 * time.Millisecond

// background tells whether the command goes on in the background when who was it
// until now has ended with success: as a daemon, in another process group, or as
// what a script has started and left. Often there is one more between the first
// process and the daemon, which ends soon; so do workers of the same group that
// follow their master.
func (k *kin) background() bool {
	for end := time.Now().Add(settledWithin); ; time.Sleep(5 * time.Millisecond) {
		late := time.Now().After(end)
		all := k.look()
		if e := k.daemonExit; k.daemon != 0 && (e == nil || *e != (Exit{})) {
			return false
		}
		// The others will become children of this program too, if they stay.
		var oldest *proc.Stat
		for _, s := range all {
			if s.Parent == os.Getpid() && (s.Group != k.first || late) && (oldest == nil || s.Start < oldest.Start) {
				oldest = s
			}
		}
		if oldest != nil {
			k.await(oldest.PID)
			return true
		}
		if len(all) == 0 || late {
			return false
		}
	}
}

// await has the end of the daemon be that of the command.
func (k *kin) await(daemon int) {
	ended := make(chan struct{})
	k.daemon, k.daemonEnded, k.daemonExit = daemon, ended, nil
	go func() {
		awaitEnd(daemon)
		close(ended)
	}()
}

// close collects what has ended. Orphans go to init again.
func (k *kin) close() {
	all := k.look()
	if k.daemon != 0 && k.daemonExit == nil && !slices.ContainsFunc(all, func(s *proc.Stat) bool { return s.PID == k.daemon }) {
		<-k.daemonEnded
		k.look()
	}
	k.release()
}
