package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ashlar-mem/ashlar/internal/hostmem/proc"
)

// Fate is what became of a process that has left the group of its command.
type Fate int

// The fates.
const (
	Untouched  Fate = iota // it was not signalled, and runs
	Terminated             // SIGTERM ended it
	Killed                 // SIGTERM did not, SIGKILL did
	AtOnce                 // SIGKILL did: there was no time for SIGTERM
	Running                // neither did
)

// Process is one that was still there, outside the process group of its command,
// when that was to be over.
type Process struct {
	PID    int
	Name   string // its command, shortened
	Fate   Fate
	OfLoad bool // the load has started it, not the command
}

// moment is how long processes have to follow their parents by themselves.
const moment = 100 * time.Millisecond

// end ends those that are left when the group was ended: each by itself, with
// SIGTERM and after a while SIGKILL. Those that had left the group it tells; there
// may be others that have only begun when the group was signalled.
func (k *kin) end(wait *patience, grace time.Duration) []Process {
	k.ending = true
	var left []Process
	empty := false
	index := map[int]int{} // in left, by their numbers
	for _, round := range []struct {
		signal syscall.Signal // 0: none yet
		fate   Fate
		over   func(time.Time) bool
	}{
		{0, Untouched, func(begin time.Time) bool { return wait.none() || time.Since(begin) >= moment }},
		{syscall.SIGTERM, Terminated, func(begin time.Time) bool {
			return wait.none() || time.Since(begin) >= moment && wait.over(begin, grace)
		}},
		{syscall.SIGKILL, Killed, func(begin time.Time) bool { return time.Since(begin) >= killedWithin }},
	} {
		asked := map[int]bool{} // new ones may come while others go
		pause := 5 * time.Millisecond
		for begin := time.Now(); ; wait.pause(pause) {
			all := k.look()
			if len(all) == 0 && !empty {
				empty = true // the kernel may skip one when others end meanwhile
				continue
			}
			if len(all) == 0 {
				// Who was not signalled has gone by itself.
				return slices.DeleteFunc(left, func(p Process) bool { return p.Fate == Untouched })
			}
			empty = false
			if round.over(begin) {
				break
			}
			for _, s := range all {
				if round.signal == 0 || asked[s.PID] {
					continue
				}
				asked[s.PID] = true
				i, known := index[s.PID]
				if !known && s.Group != k.first {
					i, known = len(left), true
					index[s.PID] = i
					left = append(left, Process{PID: s.PID, Name: command(s)})
				}
				if !signalDescendant(s, round.signal) || !known {
					continue
				}
				if round.fate == Killed && wait.none() {
					left[i].Fate = AtOnce
				} else {
					left[i].Fate = round.fate
				}
			}
			pause = min(2*pause, moment)
		}
	}
	running := map[int]bool{}
	for _, s := range k.look() {
		running[s.PID] = true
	}
	for i := range left {
		if p := &left[i]; running[p.PID] && p.Fate != Untouched {
			p.Fate = Running
		}
	}
	return slices.DeleteFunc(left, func(p Process) bool { return p.Fate == Untouched && !running[p.PID] })
}

// descends tells whether a process still descends from this program.
func descends(s *proc.Stat) bool {
	for self := os.Getpid(); s.Parent != self; {
		if s.Parent <= 1 {
			return false
		}
		parent, err := proc.ReadStat(s.Parent)
		if err != nil {
			return false
		}
		s = parent
	}
	return true
}

// commandWidth is how much of a command line names it.
const commandWidth = 60

// command names a process by its command line, or by its name if it has none.
func command(s *proc.Stat) string {
	args, err := proc.Arguments(s.PID)
	if err != nil || len(args) == 0 || args[0] == "" {
		return s.Name
	}
	args[0] = filepath.Base(args[0])
	line := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(strings.Join(args, " "), "?")), " "))
	if len(line) > commandWidth {
		return string(line[:commandWidth-1]) + "…"
	}
	return string(line)
}

// leavers is what has left its group in many runs. A service does the same in
// each: what was ended is told of one run, what still runs of all.
type leavers struct {
	all []leaver
}

// leaver is one of them.
type leaver struct {
	Process
	variant string
	more    int // like it, in later runs
}

func (l *leavers) add(r *Run) {
	before := len(l.all)
	for _, p := range r.Left {
		i := slices.IndexFunc(l.all, func(o leaver) bool { return o.Name == p.Name && o.Fate == p.Fate && o.OfLoad == p.OfLoad })
		switch {
		case i < 0 || i >= before || p.Fate == Untouched || p.Fate == Running:
			l.all = append(l.all, leaver{Process: p, variant: r.Variant})
		default:
			l.all[i].more++
		}
	}
}

func (l *leavers) notes() []string {
	var notes []string
	for _, p := range l.all {
		it, more := "it", ""
		if p.OfLoad {
			it = "the load"
		}
		if p.more > 0 {
			more = fmt.Sprintf(" (and %d like it in other runs)", p.more)
		}
		became := map[Fate]string{
			Untouched:  " running: it is in another process group and was not signalled",
			Terminated: " in another process group: SIGTERM has ended it",
			Killed:     " in another process group: it ignored SIGTERM and was killed",
			AtOnce:     " in another process group: SIGKILL has ended it",
			Running:    " running: it is in another process group and neither SIGTERM nor SIGKILL has ended it",
		}[p.Fate]
		notes = append(notes, fmt.Sprintf("under %s %s left process %d (%s)%s%s", p.variant, it, p.PID, p.Name, became, more))
	}
	return notes
}
