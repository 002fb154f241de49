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

// Fate is what became of a process that left the process group of its command.
type Fate int

// The fates.
const (
	Untouched  Fate = iota // it was not signalled, and runs
	Terminated             // SIGTERM ended it
	Killed                 // it ignored SIGTERM, SIGKILL ended it
	AtOnce                 // SIGKILL ended it: there was no time for SIGTERM
	Running                // neither signal ended it
)

// Process is a process outside the process group of its command that was still
// running when the command was to end.
type Process struct {
	PID    int
	Name   string // its command, shortened
	Fate   Fate
	OfLoad bool // the load started it, not the command
}

// moment is how long processes get to end by themselves after their parents.
const moment = 100 * time.Millisecond

// terminate stops the processes that remain after the group was stopped: each by
// itself, with SIGTERM and after a while SIGKILL. It returns those that left the
// group; others may only have started when the group was signalled.
func (t *processTree) terminate(deadline *stopDeadline, grace time.Duration) []Process {
	t.ending = true
	var left []Process
	empty := false
	index := map[int]int{} // in left, by their numbers
	for _, round := range []struct {
		signal syscall.Signal // 0: none yet
		fate   Fate
		over   func(time.Time) bool
	}{
		{0, Untouched, func(begin time.Time) bool { return deadline.killNow() || time.Since(begin) >= moment }},
		{syscall.SIGTERM, Terminated, func(begin time.Time) bool {
			return deadline.killNow() || time.Since(begin) >= moment && deadline.passed(begin, grace)
		}},
		{syscall.SIGKILL, Killed, func(begin time.Time) bool { return time.Since(begin) >= killedWithin }},
	} {
		asked := map[int]bool{} // new ones may come while others go
		pause := 5 * time.Millisecond
		for begin := time.Now(); ; deadline.pause(pause) {
			all := t.scan()
			if len(all) == 0 && !empty {
				empty = true // the kernel may skip one when others end meanwhile
				continue
			}
			if len(all) == 0 {
				// Those that were not signalled have ended by themselves.
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
				if !known && s.Group != t.first {
					i, known = len(left), true
					index[s.PID] = i
					left = append(left, Process{PID: s.PID, Name: command(s)})
				}
				if !signalDescendant(s, round.signal) || !known {
					continue
				}
				if round.fate == Killed && deadline.killNow() {
					left[i].Fate = AtOnce
				} else {
					left[i].Fate = round.fate
				}
			}
			pause = min(2*pause, moment)
		}
	}
	running := map[int]bool{}
	for _, s := range t.scan() {
		running[s.PID] = true
	}
	for i := range left {
		if p := &left[i]; running[p.PID] && p.Fate != Untouched {
			p.Fate = Running
		}
	}
	return slices.DeleteFunc(left, func(p Process) bool { return p.Fate == Untouched && !running[p.PID] })
}

// descends reports whether a process still descends from this program.
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

// escaped collects the processes that left their group, over many runs. A
// service does the same in each run: a process that was stopped is reported for
// one run, a process that still runs for all.
type escaped struct {
	all []escapedProcess
}

// escapedProcess is one of them, with its variant.
type escapedProcess struct {
	Process
	variant string
	more    int // like it, in later runs
}

func (e *escaped) add(r *Run) {
	before := len(e.all)
	for _, p := range r.Left {
		i := slices.IndexFunc(e.all, func(o escapedProcess) bool { return o.Name == p.Name && o.Fate == p.Fate && o.OfLoad == p.OfLoad })
		switch {
		case i < 0 || i >= before || p.Fate == Untouched || p.Fate == Running:
			e.all = append(e.all, escapedProcess{Process: p, variant: r.Variant})
		default:
			e.all[i].more++
		}
	}
}

func (e *escaped) notes() []string {
	var notes []string
	for _, p := range e.all {
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
