package run

import (
	"os"
	"slices"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// processTree is a command with all its descendants, including those that left
// its process group and lost their parents, as daemons do. While a command runs,
// this program is the subreaper: the kernel makes orphans its children. An orphan
// belongs to the command if it was seen in the tree before, or if it has the
// mark, which the first process gets and all others inherit. Other children of
// this program have neither, and are left alone.
//
// It is not safe for concurrent use.
type processTree struct {
	first   int // the first process, which others wait for
	mark    mark
	release func()         // lets orphans go to init again
	seen    map[int]uint64 // start times of running processes, by PID
	used    totals         // by orphans that were collected

	daemon      int           // process that replaces the first one; 0: none
	daemonEnded chan struct{} // closed when it has ended
	daemonExit  *Exit         // once it was collected
	failure     *Exit         // of the first orphan of another group that failed
	ending      bool          // they are being stopped, so an exit is no failure
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

// scan returns the running processes, parents before children, and collects
// orphans that have ended.
func (t *processTree) scan() []*proc.Stat {
	all := t.children()
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
		t.seen[s.PID], found[s.PID] = s.Start, true
	}
	for pid, start := range t.seen {
		if found[pid] {
			continue
		}
		if s, err := proc.ReadStat(pid); err != nil || s.Start != start {
			delete(t.seen, pid)
		}
	}
	return all
}

// children returns the processes that are children of this program: the first
// one and orphans. A process that ended since the listing may have left orphans
// that are not listed; then children lists again.
func (t *processTree) children() []*proc.Stat {
	const lists = 10 // short processes may follow each other for ever
	self := os.Getpid()
	ended := map[int]bool{}
	for n := 1; ; n++ {
		var all []*proc.Stat
		again := false
		for _, pid := range proc.Children(self) {
			s, err := proc.ReadStat(pid)
			if err == nil && (s.Parent != self || !t.owns(s)) {
				continue // another's
			}
			if err == nil && !exited(s) {
				all = append(all, s)
				continue
			}
			again = again || !ended[pid]
			ended[pid] = true
			if err == nil && pid != t.first {
				t.collect(s)
			}
		}
		if !again || n == lists {
			return all
		}
	}
}

// exited reports whether a process has ended, not only its first thread: the others
// may still have children.
func exited(s *proc.Stat) bool { return s.Ended() && s.Threads <= 1 }

// owns reports whether a child of this program belongs to the command.
func (t *processTree) owns(s *proc.Stat) bool {
	start, seen := t.seen[s.PID]
	return s.PID == t.first || seen && start == s.Start || t.mark.on(s.PID)
}

// pids lists the running processes, for a sampler.
func (t *processTree) pids() []int {
	var pids []int
	for _, s := range t.scan() {
		pids = append(pids, s.PID)
	}
	return pids
}

// collect takes an orphan that has ended out of the table of processes.
func (t *processTree) collect(s *proc.Stat) {
	if s.PID == t.daemon {
		select {
		case <-t.daemonEnded:
		default:
			return // somebody still waits for it
		}
	}
	exit, used, ok := collectChild(s.PID)
	if !ok {
		return
	}
	t.used.add(used)
	if s.PID == t.daemon {
		t.daemonExit = exit
	}
	if *exit != (Exit{}) && s.Group != t.first && t.failure == nil && !t.ending {
		t.failure = exit
	}
}

// failed returns how a service that seems to have succeeded really ended: a
// daemon may have failed before it was known to be the one that goes on.
func (t *processTree) failed(e *Exit) *Exit {
	if t != nil && e != nil && *e == (Exit{}) && t.failure != nil {
		return t.failure
	}
	return e
}

// settledWithin is how long a command may take to go to the background after its
// first process has ended.
const settledWithin = 500 * time.Millisecond

// background reports whether the command goes on in the background after its
// process ended with success: as a daemon, in another process group, or as
// something that a script started and left. Often there is one more process
// between the first one and the daemon, which ends soon; so do workers of the
// same group that follow their master.
func (t *processTree) background() bool {
	for end := time.Now().Add(settledWithin); ; time.Sleep(5 * time.Millisecond) {
		late := time.Now().After(end)
		all := t.scan()
		if e := t.daemonExit; t.daemon != 0 && (e == nil || *e != (Exit{})) {
			return false
		}
		// The others will become children of this program too, if they stay.
		var oldest *proc.Stat
		for _, s := range all {
			if s.Parent == os.Getpid() && (s.Group != t.first || late) && (oldest == nil || s.Start < oldest.Start) {
				oldest = s
			}
		}
		if oldest != nil {
			t.await(oldest.PID)
			return true
		}
		if len(all) == 0 || late {
			return false
		}
	}
}

// await makes the end of the daemon the end of the command.
func (t *processTree) await(daemon int) {
	ended := make(chan struct{})
	t.daemon, t.daemonEnded, t.daemonExit = daemon, ended, nil
	go func() {
		awaitEnd(daemon)
		close(ended)
	}()
}

// close collects what has ended and lets orphans go to init again.
func (t *processTree) close() {
	all := t.scan()
	if t.daemon != 0 && t.daemonExit == nil && !slices.ContainsFunc(all, func(s *proc.Stat) bool { return s.PID == t.daemon }) {
		<-t.daemonEnded
		t.scan()
	}
	t.release()
}
